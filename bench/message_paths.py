"""Of how many late round trips is the message's path whole, and how much of their lateness is unknown?

CELL: round trips measured with --explain, one or more. A path is whole if from the send to the stamp nothing
is unknown and nothing waits for an interrupt, a softirq or nobody; a wait for a lock has its holder's name.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from common import machine_line
from rtmeter.explain.segments import Segment
from rtmeter.explain.words import words_of
from rtmeter.judge.explained import explained
from rtmeter.results.cells import find_cells
from rtmeter.trace.events import SOFTIRQS, VECTORS

NOT_FOLLOWED = {*SOFTIRQS, *VECTORS.values(), "idle", None}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("cells", type=Path, nargs="+", metavar="CELL")
    args = parser.parse_args()
    print(f"{machine_line()}, load average {os.getloadavg()[0]:.0f} now\n")
    print("| cell | late | whole paths | unknown of lateness |")
    print("|---|---|---|---|")
    for path in args.cells:
        for cell in find_cells(path):
            found = explained(cell).found
            late = [each for each in found.releases if each.release.late]
            table = pq.read_table(cell.folder / "samples.parquet", columns=["release_ns", "sent_ns"])
            table = table.filter(pc.is_valid(table["sent_ns"]))
            sent = dict(zip(*(table[name].to_pylist() for name in ("release_ns", "sent_ns")), strict=True))
            gaps = [
                [one for one in each.segments if one.end_ns > sent[each.release.release_ns] and is_gap(one)]
                for each in late
            ]
            whole, lateness = sum(not one for one in gaps), sum(each.release.lateness_ns for each in late)
            shares = f"{whole / max(len(late), 1):.1%}", f"{found.unknown_ns / max(lateness, 1):.2%}"
            print(f"| {cell.folder.name} | {len(late):,} | {whole:,} ({shares[0]}) | {shares[1]} |")
            for words in sorted({words_of(one.key) for of in gaps for one in of}):
                print(f"    broken by: {words}")


def is_gap(segment: Segment) -> bool:
    """Whether the path breaks off there."""
    category, who, _ = segment.key
    return category == "unknown" or (category == "blocked" and who in NOT_FOLLOWED)


if __name__ == "__main__":
    main()
