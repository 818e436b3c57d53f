#!/usr/bin/env python3
"""After functions of netcode.h were renamed, split or joined: writes the new places into the tables, where they are beyond doubt.

    mend.py              mends the tables beside this file, and says which faults are still stale

A place that is gone was renamed to the one that holds the most of the texts that faults look for in it, if no other holds as many. A text that
its place has no more was moved, if one other place has it. Short texts prove nothing. Only `in` lines are changed: look at the difference, and
plant what was mended."""

import collections
import os

import faults

SHORT = 4  # words and signs


def renamed(changes, text):
    """Where a place went that is gone, '' in doubt."""
    significant = [change for change in changes if len(change.pattern()) >= SHORT]
    votes = collections.Counter(place for change in significant for place in change.elsewhere(text)).most_common(2)
    if not votes or len(votes) == 2 and votes[0][1] == votes[1][1]:
        return ""
    return votes[0][0]


def new_places(text):
    """table -> line of an `in` -> the new place."""
    stale = [(fault.table, change) for fault in faults.load() for change in fault.changes if change.file == faults.HEADER]
    stale = [(table, change) for table, change in stale if not change.fits(text, change.place)]
    gone = collections.defaultdict(list)
    for _, change in stale:
        if change.place not in faults.parsed(text).places:
            gone[change.place].append(change)
    names = {place: renamed(changes, text) for place, changes in gone.items()}
    wanted = collections.defaultdict(lambda: collections.defaultdict(set))
    for table, change in stale:
        others = change.elsewhere(text)
        name = names.get(change.place, "")
        moved = others[0] if len(others) == 1 and len(change.pattern()) >= SHORT else ""
        wanted[table][change.line].add(name if name in others else moved)
    return {table: {line: places.pop() for line, places in lines.items() if len(places) == 1} for table, lines in wanted.items()}


def main():
    text, count = faults.text_of(), 0
    for table, lines in new_places(text).items():
        path = os.path.join(faults.HERE, table)
        with open(path, encoding="utf-8") as file:
            content = file.read().split("\n")
        for line, place in lines.items():
            if place:
                words = content[line - 1].split(",")
                content[line - 1] = ",".join(["in " + place] + words[1:])
                count += 1
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(content))
    left = [(fault.name, fault.stale(faults.text_of)) for fault in faults.load()]
    left = [(name, wrong) for name, wrong in left if wrong]
    for name, wrong in left:
        print("%s: %s" % (name, wrong))
    print("%d places written anew, %d faults are still stale" % (count, len(left)))


if __name__ == "__main__":
    main()
