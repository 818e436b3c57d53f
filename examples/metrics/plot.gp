# Draws good.csv and bad.csv, which record.c wrote: round trip, jitter, loss and throughput over time. Solid lines are what messages
# measure, dashed ones what the client's core does.
#
#     gnuplot -e "out='build/plots'; bad='what the bad network was'" examples/metrics/plot.gp
#
# It leaves what it has drawn beside the pictures, as numbers: drawn.txt.
set datafile separator ','
if (!exists("out")) out = 'build/plots'
if (!exists("bad")) bad = 'Bad network'
good_file = out.'/good.csv'
bad_file = out.'/bad.csv'

set grid back lc rgb '#dddddd'
set border 3 back lc rgb '#888888'
set tics nomirror textcolor rgb '#333333'
set key at graph 1.0,1.22 right horizontal samplen 2 textcolor rgb '#333333'
set style line 1 lc rgb '#1f77b4' lw 1.6
set style line 2 lc rgb '#d62728' lw 1.6
set style line 3 lc rgb '#1f77b4' lw 1.2 dt 2
set style line 4 lc rgb '#d62728' lw 1.2 dt 2
set xrange [0:*]
set autoscale xfixmax
set yrange [0:*]

# One line for the pictures and for drawn.txt: they can not differ. A panel sets the column c and its factor f, and k for the core's column.
draw = "plot good_file using 1:(column(c)*f) every ::1 with lines ls 1 title 'good', bad_file using 1:(column(c)*f) every ::1 with lines ls 2 title 'bad'"
draw_both = draw.", good_file using 1:(column(k)*f) every ::1 with lines ls 3 title 'good, core', bad_file using 1:(column(k)*f) every ::1 with lines ls 4 title 'bad, core'"

do for [kind in "svg png"] {
    if (kind eq 'svg') {
        set terminal svg size 720,600 font 'sans,11' background rgb 'white'
    } else {
        set terminal pngcairo size 720,600 font 'sans,9' background rgb 'white'
    }
    set output out.'/network.'.kind
    set multiplot layout 4,1 title bad font ',11' margins 0.09,0.97,0.07,0.93 spacing 0.06
    unset xlabel
    set ylabel 'round trip, ms'; c = 2; k = 18; f = 1.0
    @draw_both
    unset key
    set ylabel 'jitter, ms'; c = 5
    @draw
    set ylabel 'loss received, %'; c = 8; k = 20
    @draw_both
    set xlabel 'seconds'
    set ylabel 'received, kB/s'; c = 10; f = 0.001
    @draw
    unset multiplot
    set output
    set key
}

set table out.'/drawn.txt'
f = 1.0
c = 2; k = 18
@draw_both
c = 5
@draw
c = 8; k = 20
@draw_both
c = 10; f = 0.001
@draw
unset table
