# What the library costs, against the number of connected clients; libsodium's part of it is dashed. After `make bench`:
#
#   gnuplot -c tests/bench.gp build/bench.dat build/bench.svg
#
# A picture whose name ends in .png is a PNG.

data = ARGC > 0 ? ARG1 : "build/bench.dat"
picture = ARGC > 1 ? ARG2 : "build/bench.svg"
if (picture[strlen(picture) - 3:] eq ".png") {
    set terminal pngcairo size 1200,900 font "sans,11" background "white"
} else {
    set terminal svg size 1200,900 font "sans,13" background "white"
}
set output picture

set logscale x
set xrange [0.7:15000]
set xtics ("1" 1, "16" 16, "256" 256, "10,000" 10000)
set yrange [0:*]
set grid ytics lc "#dddddd"
set border 3
set tics nomirror
set key top left reverse Left
set xlabel "connected clients"
set ylabel "ns"
set style data linespoints
set pointsize 0.8
set offsets 0, 0, graph 0.25, 0
set style line 1 lw 2 pt 7 lc "#1b6ca8"
set style line 2 lw 2 pt 7 lc "#c0392b"
set style line 3 lw 2 pt 7 lc "#2e8b57"
set style line 11 lw 1 dt 2 pt 6 lc "#1b6ca8"
set style line 12 lw 1 dt 2 pt 6 lc "#c0392b"
set style line 13 lw 1 dt 2 pt 6 lc "#2e8b57"

set multiplot layout 2,2

set title "a payload in and one out"
plot data using 1:6 ls 3 title "1200 bytes", "" using 1:7 ls 13 notitle, \
    "" using 1:4 ls 2 title "256 bytes", "" using 1:5 ls 12 notitle, \
    "" using 1:2 ls 1 title "64 bytes", "" using 1:3 ls 11 title "libsodium alone"

set title "refusing junk from an unknown address"
plot data using 1:8 ls 1 notitle

set title "a handshake, the server's side"
plot data using 1:9 ls 1 title "the library", "" using 1:10 ls 11 title "libsodium alone"

set title "an update in which nothing comes and nothing is due"
plot data using 1:11 ls 1 notitle

unset multiplot
