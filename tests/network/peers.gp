# Messages beside peers: the pictures of tests/network/peers.py.
#
#   gnuplot -c tests/network/peers.gp cells|rate|share build/network
#
# cells: latency by cell. rate: a transfer beside a game, over time. share: two flows on one path, over time.

picture = ARG1
folder = ARG2 . "/"
set terminal svg size 1200,720 font "sans,13" background "white"
set output folder . picture . ".svg"
set border 3
set tics nomirror
set grid ytics lc "#dddddd"
set key top left reverse Left
colors = "#1b6ca8 #c0392b #2e8b57 #8e6bb0"

if (picture eq "cells") {
    data = folder . "cells.dat"
    stats data using 3 nooutput
    longest = STATS_max
    peers = STATS_blocks
    stats data index 0 using 1 nooutput
    last = int(STATS_max)
    width = 0.8 / peers
    place(block) = (block - (peers - 1) / 2.0) * width
    set title "64-byte ordered messages: from due to delivered, median to 99th percentile"
    set ylabel "milliseconds"
    set logscale y
    set yrange [40:longest * 1.5]
    set ytics ("50" 50, "100" 100, "200" 200, "500" 500, "1,000" 1000, "2,000" 2000, "5,000" 5000, "10,000" 10000)
    set xrange [-0.6:last + 0.6]
    set xtics rotate by 50 right
    set boxwidth width * 0.85
    set style fill solid 0.6 border
    # A box of no height, where p50 and p99 are one value, is a line.
    plot data index 0 using 1:2:xtic(4) with points ps 0 notitle, \
        for [b = 0:peers - 1] data index b using ($1 + place(b)):2:2:3:3:(width * 0.85) \
            with candlesticks lw 1.5 lc rgb word(colors, b + 1) title columnheader(1)
}

if (picture eq "rate") {
    stats folder . "rate.dat" using 1 nooutput
    lines = STATS_blocks
    set multiplot layout 2,1
    set xrange [0:14]
    set key outside right
    set title "messages of 32,000 bytes, 8 on their way, from the 2nd second on, beside a 60 Hz game: 25 ms, 1 MB/s, 1 % lost"
    set ylabel "kB/s delivered"
    set yrange [0:1400]
    plot for [b = 0:lines - 1] folder . "rate.dat" index b using 1:2 with lines lw 2 lc rgb word(colors, b + 1) title columnheader(1)
    set title "the game's messages"
    set xlabel "seconds"
    set ylabel "milliseconds until delivered"
    set logscale y
    set yrange [30:*]
    plot for [b = 0:lines - 1] folder . "game.dat" index b using 1:2 with lines lw 1.5 lc rgb word(colors, b + 1) title columnheader(1)
    unset multiplot
}

if (picture eq "share") {
    data = folder . "share.dat"
    stats data using 1 nooutput
    lines = STATS_blocks
    set multiplot layout (lines + 3) / 4,2 title "two flows on 1 MB/s, 25 ms, a queue of 100 ms; the second begins 5 seconds later"
    set xlabel "seconds"
    set ylabel "kB/s delivered"
    set xrange [0:40]
    set yrange [0:1300]
    do for [b = 0:lines - 2:2] {
        plot for [i = b:b + 1] data index i using 1:2 with lines lw 2 lc rgb word(colors, i - b + 1) title columnheader(1)
    }
    unset multiplot
}
