/*  The 48 cells: paths and streams on which others have measured GameNetworkingSockets. */

#ifndef NETWORK_CELLS_H
#define NETWORK_CELLS_H

enum { CELL_DELAYS = 3, CELL_LOSSES = 4, CELL_COUNTS = 4 };
static const double cell_delays[CELL_DELAYS] = { 0.05, 0.1, 0.15 };
static const double cell_losses[CELL_LOSSES] = { 0.01, 0.03, 0.05, 0.1 };
static const int cell_counts[CELL_COUNTS] = { 5, 8, 16, 30 };

/* GameNetworkingSockets on the same cells, p50 and p99 in milliseconds: measured by others, quoted. */
static const int cell_gns[CELL_DELAYS][CELL_LOSSES][CELL_COUNTS][2] =
    { { { { 67, 200 }, { 67, 200 }, { 67, 200 }, { 67, 183 } },
        { { 67, 250 }, { 67, 250 }, { 67, 233 }, { 67, 250 } },
        { { 67, 317 }, { 67, 267 }, { 67, 300 }, { 83, 300 } },
        { { 117, 350 }, { 117, 400 }, { 133, 367 }, { 150, 333 } } },
      { { { 117, 350 }, { 117, 350 }, { 117, 350 }, { 117, 333 } },
        { { 117, 383 }, { 117, 417 }, { 117, 483 }, { 167, 450 } },
        { { 167, 533 }, { 167, 533 }, { 183, 550 }, { 250, 550 } },
        { { 267, 617 }, { 283, 650 }, { 283, 767 }, { 317, 733 } } },
      { { { 167, 500 }, { 167, 500 }, { 167, 500 }, { 167, 483 } },
        { { 200, 583 }, { 200, 617 }, { 200, 500 }, { 317, 683 } },
        { { 333, 817 }, { 333, 817 }, { 333, 850 }, { 400, 917 } },
        { { 433, 1067 }, { 433, 850 }, { 450, 1100 }, { 483, 1117 } } } };

#endif
