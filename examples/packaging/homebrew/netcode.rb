# Untested here: Homebrew can not be had where this was written, and the library itself was not tried on macOS. With a tap of yours:
#
#     brew tap-new YOU/games && cp netcode.rb "$(brew --repository YOU/games)/Formula/" && brew install YOU/games/netcode
#
# url and sha256 (of that archive: `brew fetch` prints it) name your copy of the repository.
class Netcode < Formula
  desc "Secure client/server connections over UDP, netcode 1.02, in one C header"
  homepage "https://example.org/netcode"
  url "https://example.org/netcode/archive/v1.1.0.tar.gz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license "MIT"

  depends_on "pkgconf" => [:build, :test]
  depends_on "libsodium"

  def install
    system "make", "install", "PREFIX=#{prefix}", "DEPS=no"
  end

  test do
    (testpath/"test.c").write <<~C
      #define NETCODE_IMPLEMENTATION
      #include <netcode.h>
      #include <string.h>
      int main( void )
      {
          return netcode_init() != NETCODE_OK || strcmp( netcode_version(), "#{version}" ) != 0;
      }
    C
    flags = shell_output("pkgconf --cflags --libs netcode").chomp.split
    system ENV.cc, "test.c", *flags, "-o", "test"
    system "./test"
    assert_match "keygen", shell_output("#{bin}/netcode-token --help")
  end
end
