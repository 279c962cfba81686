"""Mutates what is judged, planned and kept, and says how many of the mutants the tests notice.

`make mutants` draws a few of each file's with a fixed seed; `--share 1` tries all, `--only` one file of them.
What was found of a mutant is kept as soon as it is, so that a run that was ended goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import resource
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

from covering import Covering, cover, load
from mutations import Mutant, mutants_of
from report import NOTICED, write
from trial import ROOT, Fate, fates, warm_up

SOURCES = (
    *("src/rtmeter/statistics/*.py", "src/rtmeter/judge/*.py", "src/rtmeter/campaign/plan*.py"),
    *("src/rtmeter/conditions/journal*.py", "src/rtmeter/conditions/undo.py"),
    *("src/rtmeter/results/store.py", "src/rtmeter/campaign/rules.py"),
)
UNIT = """
    advice api beside chain_limits cli cli_compare cli_compare_repeats cli_dry_run cli_factors cli_gates
    cli_layers cli_plan cli_verdict cli_verdict_repeats clocks compared_doubts condition_options
    conditions_shown config discovery entries environment exit_codes exports first_impressions
    hostile_files joint_findings joint_support layouts machine_intent machines matching next_step only
    pairs planning plots polling published repeats_by_name report_answer report_bounds report_data
    report_explained report_factors report_matrix requests search second_topic_option shapes statistics
    statistics_examples store store_power_loss stored_verdicts strain_options table target_asked
    target_chain target_cyclictest thread_findings values verdict verdict_counted verdict_rule why
"""
CONDITIONS = """
    cli_restore hostile_names journal_of_hosts journal_power_loss restore trust undo_kills
"""
TESTS = (
    "tests/statistics",
    *(f"tests/conditions/test_{name}.py" for name in CONDITIONS.split()),
    *("tests/importers/test_import_cells.py", "tests/importers/test_graphs.py"),
    *("tests/archive/test_archive_trend.py", "tests/archive/test_archive_groups.py"),
    *(f"tests/explain/test_{name}.py" for name in ("explain_cells", "explained_choice", "explained_counts")),
    *(f"tests/unit/test_{name}.py" for name in UNIT.split()),
)
"""The quick tests of what is mutated."""

BUDGET_S = 10.0
"""Of tests a mutant has to survive, as long as they take without one."""

MOST_S = 90
"""Processor time after which a mutant that does not end counts as noticed."""

WORK = Path("build/mutants")


def drawn(sources: list[Path], share: float, at_least: int, seed: int) -> tuple[list[Mutant], dict[str, int]]:
    mutants, totals = [], {}
    for path in sources:
        found, totals[str(path)] = mutants_of(path, share, at_least, seed)
        mutants += found
    return mutants, totals


def _there(tests: tuple[str, ...]) -> list[str]:
    return [test for test in tests if Path(test).exists()]


def in_turn(mutants: Sequence[Mutant], seed: int) -> list[Mutant]:
    """One of each file, then the next of each, drawn with the seed: those tried before the time is up are
    a sample of every file's."""
    of_file = defaultdict[Path, list[Mutant]](list)
    for mutant in random.Random(seed).sample(mutants, len(mutants)):
        of_file[mutant.path].append(mutant)
    turns = [(turn, mutant) for found in of_file.values() for turn, mutant in enumerate(found)]
    return [mutant for _, mutant in sorted(turns, key=lambda one: one[0])]


def trials(
    mutants: Sequence[Mutant], covering: Covering, minutes: float
) -> Iterator[tuple[Mutant, list[str]]]:
    """So many as begin within the minutes of processor time of those that have ended."""
    before = _spent_s()
    for mutant in mutants:
        if _spent_s() - before >= 60 * minutes:
            return
        yield mutant, covering.tests(mutant.path, mutant.lines, BUDGET_S)


def _spent_s() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def kept_fates(path: Path) -> dict[str, Fate]:
    """What earlier runs found, by the mutants' keys; the latest of each."""
    lines = path.read_text().splitlines() if path.exists() else []
    return dict(json.loads(line) for line in lines)


def nothing_named(only: Sequence[str], sources: Sequence[Path]) -> str:
    """That no file is chosen, and which are nearest to what was written."""
    names = {name: str(path) for path in sources for name in (str(path), path.name, path.stem)}
    near = [name for part in only for name in get_close_matches(part, names, n=3)]
    said = ", ".join(dict.fromkeys(names[name] for name in near)) or "any of " + ", ".join(SOURCES)
    return f"--only {', '.join(only)}: is part of no file that is mutated; name {said}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=0.0, help="of each file's mutants that is tried")
    parser.add_argument("--at-least", type=int, default=5, help="so many of each file's, if it has them")
    parser.add_argument("--seed", type=int, default=1, help="that draws them")
    parser.add_argument("--only", action="append", default=[], help="a file, or a part of its path")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--minutes", type=float, default=math.inf, help="of processor time to begin in")
    parser.add_argument("--covered", action="store_true", help="take what an earlier run saw of the tests")
    parser.add_argument("--cover", nargs="+", default=[], help="run these tests anew, the rest as --covered")
    parser.add_argument("--again", action="store_true", help="try the survivors of earlier runs again")
    parser.add_argument("--anew", action="store_true", help="forget what earlier runs found")
    parser.add_argument("--write", action="store_true", help="write the tables of docs/mutants.md")
    asked = parser.parse_args()
    os.chdir(ROOT)
    WORK.mkdir(parents=True, exist_ok=True)
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    sources = sorted(path.relative_to(ROOT) for pattern in SOURCES for path in ROOT.glob(pattern))
    wanted = [path for path in sources if not asked.only or any(part in str(path) for part in asked.only)]
    if not wanted:
        parser.error(nothing_named(asked.only, sources))
    kept = WORK / "covering.json"
    if asked.cover:
        cover(asked.cover, sources, kept, beside=True)
    covering = load(kept) if asked.covered or asked.cover else cover(_there(TESTS), sources, kept)
    mutants, totals = drawn(wanted, asked.share, asked.at_least, asked.seed)
    results = WORK / "fates.jsonl"
    if asked.anew:
        results.unlink(missing_ok=True)
    known = kept_fates(results)
    if asked.again:
        known = {key: fate for key, fate in known.items() if fate in NOTICED}
    warm_up()
    start = time.monotonic()
    rest = in_turn([mutant for mutant in mutants if mutant.key not in known], asked.seed)
    tried = len(mutants) - len(rest)
    with results.open("a") as keep:
        for mutant, fate in fates(trials(rest, covering, asked.minutes), asked.jobs, MOST_S, WORK):
            known[mutant.key] = fate
            tried += 1
            keep.write(json.dumps([mutant.key, fate]) + "\n")
            keep.flush()
            mark = "" if fate in NOTICED else f"  {fate}: {mutant.name}"
            print(f"{tried}/{len(mutants)} {time.monotonic() - start:.0f} s{mark}", flush=True)
    found = [(mutant, known[mutant.key]) for mutant in mutants if mutant.key in known]
    write(found, totals, asked.share, asked.at_least, asked.seed, into_docs=asked.write)


if __name__ == "__main__":
    main()
