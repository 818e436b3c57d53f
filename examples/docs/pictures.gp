# Draws costs.dat and latency.dat, which pages.py writes, in the folder that it is called in.
set terminal svg size 520,360 font "sans-serif,14" background "white"
set border 3 lc rgb "#888888"
set tics nomirror textcolor rgb "#333333"
set grid ytics lc rgb "#dddddd"
set key below

set output "costs.svg"
set title "A payload in and one out, to libsodium alone:\nrange of the medians"
set style data histograms
set style histogram errorbars gap 1.5 lw 1.5
set style fill solid 0.8 border lc rgb "#333333"
set yrange [1:1.2]
set format y "%.2f ×"
set xtics ("64 bytes" 0, "256 bytes" 1, "1200 bytes" 2)
plot "costs.dat" using (($2+$3)/2):2:3 lc rgb "#1b6ca8" title "16 clients", \
     "" using (($4+$5)/2):4:5 lc rgb "#2e8b57" title "256 clients", "" using (($6+$7)/2):6:7 lc rgb "#c0392b" title "10,000 clients"

set output "latency.svg"
set title "99th percentile of ordered messages:\n64 bytes at 60 Hz, 50 ms one way"
set yrange [0:600]
set format y "%g ms"
set xlabel "packets lost, %"
set xtics ("1" 1, "3" 3, "5" 5, "10" 10)
set xrange [0.5:10.5]
set style data linespoints
set pointsize 0.8
plot "latency.dat" using 1:2 lw 2 pt 7 lc rgb "#1b6ca8" title "messages", "" using 1:3 lw 2 pt 7 lc rgb "#888888" title "a fixed timer of 200 ms", \
     "" using 1:4 lw 2 pt 7 lc rgb "#2e8b57" title "TCP with BBR", "" using 1:5 lw 2 pt 7 lc rgb "#c0392b" title "TCP with CUBIC"
