# All that is changed in Chocolate Doom's own files, in src/CMakeLists.txt: our network file in the place of the engine's, in each of three
# programs, and libsodium in the place of SDL_net, which nothing else uses.
s/net_sdl\.c /net_netcode.c /
s/SDL2::net/sodium/
