#!/usr/bin/env python3
"""Does every client see what the server knows? Compares what clients drew of the others with where those stood, at the tick that was drawn.

    views.py SERVER-TRACE CLIENT-TRACE...

A server writes a line for each tick: the tick, then slot:x:y:health for each player. A client writes its slot, the tick that it drew (a
fraction), and what it drew. A view is right if it is off by no more than BOUND units for SHARE of all, and by no more than WORST ever; if
no player is drawn that is out, and none is missing that plays. Prints figures, and ends with 1 where something is not right."""

import bisect
import math
import sys

TILE = 256
BOUND = 64  # a quarter of a tile: what lies between two snapshots, and their grain
SHARE = 0.99
WORST = 320  # a player's way in 12 ticks: several snapshots in a row were lost
NEAR = 6  # ticks around a death, a return or an end that are not judged


def read(path):
    rows = []
    with open(path, encoding="ascii") as file:
        for line in file:
            if not line.endswith("\n"):
                break  # cut when the program was ended
            words = line.split()
            players = {}
            for word in words:
                if ":" in word:
                    slot, x, y, health = (int(number) for number in word.split(":"))
                    players[slot] = (x, y, health)
            rows.append(([float(word) for word in words if ":" not in word], players))
    return rows


def judge(ticks, views):
    """ticks: {tick: players}. Returns lists of distances, of ghosts and of missing ones, and how many were judged."""
    far, ghosts, missing = [], [], []
    for (slot, render), drawn in views:
        low = math.floor(render)
        around = [ticks.get(tick) for tick in range(low - NEAR, low + NEAR + 2)]
        if any(players is None for players in around):
            continue
        part = render - low
        for other in set(around[NEAR]) | set(drawn):
            if other == slot:
                continue
            alive = [players.get(other, (0, 0, 0))[2] > 0 for players in around]
            if any(alive) and not all(alive):
                continue
            steps = [(a[other][0] - b[other][0], a[other][1] - b[other][1]) for a, b in zip(around, around[1:]) if other in a and other in b]
            if any(abs(x) > TILE or abs(y) > TILE for x, y in steps):
                continue  # it came back elsewhere
            if not all(alive):
                if other in drawn:
                    ghosts.append((slot, render, other))
            elif other not in drawn:
                missing.append((slot, render, other))
            else:
                before, after = around[NEAR][other], around[NEAR + 1][other]
                x = before[0] + (after[0] - before[0]) * part
                y = before[1] + (after[1] - before[1]) * part
                far.append(math.hypot(drawn[other][0] - x, drawn[other][1] - y))
    return far, ghosts, missing


def compare(server_path, client_paths, most=WORST):
    """Returns (is it right, a line of figures)."""
    ticks = {int(head[0]): players for head, players in read(server_path)}
    views = [row for path in client_paths for row in read(path)]
    far, ghosts, missing = judge(ticks, views)
    far.sort()
    count = len(far)
    if not count:
        return False, "no view could be judged"
    share = bisect.bisect_right(far, BOUND) / count
    text = "%d views of others by %d clients: %.2f %% within %d units (a tile has %d), median %.0f, p99 %.0f, worst %.0f; %d drawn who were out, %d missing" % (
        count, len({row[0][0] for row in views}), 100 * share, BOUND, TILE, far[count // 2], far[int(count * 0.99)], far[-1], len(ghosts), len(missing))
    return share >= SHARE and far[-1] <= most and not ghosts and not missing, text


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    right, figures = compare(sys.argv[1], sys.argv[2:])
    print(figures)
    sys.exit(0 if right else 1)
