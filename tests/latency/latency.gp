# How long small ordered messages are on their way, by loss and transport: the picture of tests/latency/latency.py.
#
#   gnuplot -c tests/latency/latency.gp build/latency/latency.dat build/latency/latency.svg
#
# A picture whose name ends in .png is a PNG.

data = ARGC > 0 ? ARG1 : "build/latency/latency.dat"
picture = ARGC > 1 ? ARG2 : "build/latency/latency.svg"
if (picture[strlen(picture) - 3:] eq ".png") {
    set terminal pngcairo size 1000,620 font "sans,11" background "white"
} else {
    set terminal svg size 1000,620 font "sans,13" background "white"
}
set output picture

stats data using 7 nooutput
longest = STATS_max
stats data using 1 nooutput
transports = STATS_blocks
losses = int(STATS_max) + 1
width = 0.8 / transports
place(block) = (block - (transports - 1) / 2.0) * width

set title "64-byte ordered messages at 60 Hz each way, 50 ms one way: from sent to delivered\n" . \
    "box: median to 99th percentile (the number); line: up to the 99.9th; cross: the longest"
set xlabel "packets lost, each way"
set ylabel "milliseconds"
set logscale y
set yrange [42:longest * 1.3]
set ytics ("50" 50, "100" 100, "200" 200, "300" 300, "500" 500, "1,000" 1000, "2,000" 2000, "5,000" 5000, "10,000" 10000, "30,000" 30000)
set xrange [-0.5:losses - 0.5]
set grid ytics lc "#dddddd"
set border 3
set tics nomirror
set key top left reverse Left
set boxwidth width * 0.8
set style fill solid 0.55 border
colors = "#1b6ca8 #c0392b #2e8b57 #8e6bb0"

# Only a group has a tick, not each box. A box from the median to the 99th percentile, a line up to the 99.9th, a cross at the longest.
plot data index 0 using 1:3:xtic(sprintf("%g %%", $2)) with points ps 0 notitle, \
    for [b = 0:transports - 1] data index b using ($1 + place(b)):3:3:6:5:(width * 0.8) \
        with candlesticks whiskerbars 0.5 lw 1.5 lc rgb word(colors, b + 1) title columnheader(1), \
    for [b = 0:transports - 1] data index b using ($1 + place(b)):7 with points pt 2 ps 0.7 lc rgb word(colors, b + 1) notitle, \
    for [b = 0:transports - 1] data index b using ($1 + place(b)):($5 > 1.25 * $3 ? $5 : $3):(sprintf("%.0f", $5)) \
        with labels offset 0, -0.6 font ",9" notitle
