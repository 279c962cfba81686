"""Mutates what is judged, planned and kept, and says how many of the mutants the tests notice.

`make mutants` draws a share of them with a fixed seed; `--share 1` tries all, `--only` one file of them.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

from covering import Covering, cover, load
from mutations import Mutant, mutants_of
from report import write
from trial import ROOT, fates, warm_up

SOURCES = (
    *("src/rtmeter/statistics/*.py", "src/rtmeter/verdict*.py", "src/rtmeter/planning.py"),
    *("src/rtmeter/conditions/journal.py", "src/rtmeter/store.py", "src/rtmeter/config_rules.py"),
)
TESTS = (
    *("tests/statistics", "tests/conditions/test_restore.py", "tests/conditions/test_journal_of_hosts.py"),
    "tests/importers/test_import_cells.py",
    *(
        f"tests/unit/test_{name}.py"
        for name in (
            *("statistics", "statistics_examples", "verdict", "planning", "environment", "config", "store"),
            *("cli_verdict", "cli_plan", "cli_compare", "cli_gates", "report_bounds", "plots"),
        )
    ),
)
"""The quick tests of what is mutated."""

BUDGET_S = 10.0
"""Of tests a mutant has to survive, as long as they take without one."""

MOST_S = 90
"""Processor time after which a mutant that does not end counts as noticed."""

WORK = Path("build/mutants")


def drawn(sources: list[Path], share: float, seed: int) -> tuple[list[Mutant], dict[str, int]]:
    mutants, totals = [], {}
    for path in sources:
        found, totals[str(path)] = mutants_of(path, share, seed)
        mutants += found
    return mutants, totals


def _there(tests: tuple[str, ...]) -> list[str]:
    return [test for test in tests if Path(test).exists()]


def trials(
    mutants: list[Mutant], covering: Covering, seed: int, minutes: float
) -> Iterator[tuple[Mutant, list[str]]]:
    """In an order drawn with the seed, so that those tried before the time is up are a sample, too."""
    end = time.monotonic() + 60 * minutes
    for mutant in random.Random(seed).sample(mutants, len(mutants)):
        if time.monotonic() > end:
            return
        yield mutant, covering.tests(mutant.path, mutant.lines, BUDGET_S)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=0.05, help="of each file's mutants that is tried")
    parser.add_argument("--seed", type=int, default=1, help="that draws them")
    parser.add_argument("--only", action="append", default=[], help="a file, or a part of its path")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no more mutants after so many")
    parser.add_argument("--covered", action="store_true", help="take what an earlier run saw of the tests")
    parser.add_argument("--cover", nargs="+", default=[], help="run these tests anew, the rest as --covered")
    parser.add_argument("--again", action="store_true", help="try the survivors of the last run only")
    parser.add_argument("--write", action="store_true", help="write the tables of docs/mutants.md")
    asked = parser.parse_args()
    os.chdir(ROOT)
    WORK.mkdir(parents=True, exist_ok=True)
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    sources = sorted(path.relative_to(ROOT) for pattern in SOURCES for path in ROOT.glob(pattern))
    kept = WORK / "covering.json"
    if asked.cover:
        cover(asked.cover, sources, kept, beside=True)
    covering = load(kept) if asked.covered or asked.cover else cover(_there(TESTS), sources, kept)
    sources = [path for path in sources if not asked.only or any(part in str(path) for part in asked.only)]
    mutants, totals = drawn(sources, asked.share, asked.seed)
    results = WORK / "results.json"
    known: dict[str, str] = {}
    if asked.again:
        fates_known = json.loads(results.read_text())["fates"]
        known = {name: fate for name, fate in fates_known if fate in ("killed", "timeout")}
    warm_up()
    start = time.monotonic()
    found = [(mutant, known[mutant.name]) for mutant in mutants if mutant.name in known]
    rest = [mutant for mutant in mutants if mutant.name not in known]
    for mutant, fate in fates(trials(rest, covering, asked.seed, asked.minutes), asked.jobs, MOST_S, WORK):
        found.append((mutant, fate))
        mark = "" if fate in ("killed", "timeout") else f"  {fate}: {mutant.name}"
        print(f"{len(found)}/{len(mutants)} {time.monotonic() - start:.0f} s{mark}", flush=True)
    order = {mutant.name: at for at, mutant in enumerate(mutants)}
    found.sort(key=lambda one: order[one[0].name])
    kept_fates = [(mutant.name, fate) for mutant, fate in found]
    results.write_text(json.dumps({"totals": totals, "fates": kept_fates, "asked": vars(asked)}, indent=1))
    write(found, totals, asked.share, asked.seed, into_docs=asked.write)


if __name__ == "__main__":
    main()
