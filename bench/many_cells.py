"""What commands over many cells cost: one run of N made-up cells, each command a process of its own.

Bounds at 10,000 cells: summary and verdict 5 s each, a look of watch 50 ms of processor time, the report
20 MB, a second site nothing but the look for what changed, 500 MB of memory each.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from itertools import product
from pathlib import Path

from common import ROOT, machine_line, save
from day import RTMETER, print_steps, run

sys.path.insert(0, str(ROOT / "tests"))

SAMPLES = 100
KINDS = 20
CONDITIONS = 400
"""Of which the cells are repeats: as many as the other axes have values."""
LOOKS = 20

WATCH = f"""
import sys, time
from pathlib import Path
from rtmeter.live.run import FollowedRun
run = FollowedRun.at(Path(sys.argv[1]))
run.state()
begun = time.process_time()
for _ in range({LOOKS}):
    run.state()
print((time.process_time() - begun) / {LOOKS}, file=sys.stderr)
"""


def axes(cells: int) -> Iterator[dict[str, object]]:
    """Different values of four axes."""
    loads, priorities, sizes = range(10), range(1, 100, 10), (64, 512, 4096, 65536)
    repeats = range(1, cells // 400 + 2)
    for repeat, size, priority, load in product(repeats, sizes, priorities, loads):
        fifo = {"policy": "fifo", "priority": priority}
        yield {"scheduling": fifo, "payload_bytes": size, "load": f"cpu:{load}", "repeat": repeat}


def make_cells(run_folder: Path, cells: int) -> None:
    """A run of so many cells of a few kinds, whose samples are the same files."""
    from rtmeter.judge.cell import judged_by
    from rtmeter.results.record import text_of
    from rtmeter.results.record.reading import cell_of
    from rtmeter.values import version
    from synthetic import Made, usual, write_cell

    kinds = run_folder.parent / "kinds"
    made = [
        write_cell(kinds / str(n), Made(delays=usual(n, 20 + n), samples=SAMPLES, warm_up=0))
        for n in range(KINDS)
    ]
    records = [json.loads((folder / "cell.json").read_text()) for folder in made]
    ids = []
    for number, values in zip(range(cells), axes(cells), strict=False):
        ids.append(f"wakeup-{number % CONDITIONS:03}-r{values['repeat']}")
        folder = run_folder / ids[-1]
        folder.mkdir(parents=True)
        os.link(made[number % KINDS] / "samples.parquet", folder / "samples.parquet")
        record = records[number % KINDS] | {"id": ids[-1], "axes": values, "rtmeter": version()}
        content = cell_of(json.dumps(record).encode(), folder / "cell.json")
        (folder / "cell.json").write_text(text_of(content.changed(judged_by=judged_by(folder))))
    about = {"format": "rtmeter-run", "version": 2, "campaign": "many", "description": "", "cells": ids}
    about |= {
        "started": "2026-11-21T05:00:00Z",
        "scale": 1.0,
        "host": None,
        "ended": None,
        "rtmeter": "0.1.0",
    }
    (run_folder / "run.json").write_text(json.dumps(about))
    shutil.rmtree(kinds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cells", type=int, default=10_000)
    parser.add_argument(
        "--only", nargs="*", default=["summary", "verdict", "watch", "compare", "report", "site"]
    )
    args = parser.parse_args()

    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as name:
        results, page, site = Path(name) / "results", Path(name) / "report.html", Path(name) / "site"
        folder = results / "robot-7" / "many" / "20261121T050000Z"
        begun = time.monotonic()
        make_cells(folder, args.cells)
        print(f"made in {time.monotonic() - begun:.1f} s", file=sys.stderr)
        commands = {
            "summary": [*RTMETER, "summary", folder],
            "verdict": [*RTMETER, "verdict", folder],
            "watch": [sys.executable, "-c", WATCH, folder],
            "compare": [*RTMETER, "compare", folder, folder],
            "report": [*RTMETER, "report", folder, "-o", page],
            "site": [*RTMETER, "site", results, "-o", site, "--no-reports"],
        }
        steps = []
        for command, time_of in product(args.only, ("first", "again")):
            steps.append(run(f"{command}, {time_of}", *commands[command]))
            print(steps[-1], file=sys.stderr)
        size = page.stat().st_size if page.exists() else 0

    print(machine_line())
    print(f"load average {os.getloadavg()[0]:.1f}\n\n{args.cells:,} cells\n")
    print_steps(steps)
    print(f"\nreport {size / 1e6:.1f} MB")
    result = {"cells": args.cells, "steps": [asdict(step) for step in steps], "report_bytes": size}
    print(f"\n{save('many_cells', result)}")


if __name__ == "__main__":
    main()
