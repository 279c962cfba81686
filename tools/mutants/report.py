"""The score by file and the survivors with their reasons, printed and in docs/mutants.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

import yaml
from mutations import Mutant
from scipy.stats import binomtest

DOCS = Path("docs/mutants.md")
REASONS = Path("tools/mutants/reasons.yaml")
"""Why a survivor is none that a test should notice, by its name without the line's number."""

BEGIN, END = "<!-- python mutants: begin -->\n", "<!-- python mutants: end -->\n"
NOTICED = ("killed", "timeout")


def write(
    found: Sequence[tuple[Mutant, str]],
    totals: dict[str, int],
    share: float,
    at_least: int,
    seed: int,
    *,
    into_docs: bool,
) -> None:
    """The tables; ``totals``: how many mutants each file has."""
    reasons = yaml.safe_load(REASONS.read_text()) or {}
    lines = [_said(found, totals, share, at_least, seed), ""]
    lines += ["| file | mutants | tried | noticed | share |", "|---|---|---|---|---|"]
    for path, group in groupby(found, key=lambda one: str(one[0].path)):
        fates = Counter(fate for _, fate in group)
        tried, noticed = fates.total(), sum(fates[fate] for fate in NOTICED)
        name = path.removeprefix("src/rtmeter/")
        lines.append(f"| {name} | {totals[path]:,} | {tried:,} | {noticed:,} | {_percent(noticed, tried)} |")
    lines += ["", "| survivor | was | became | why |", "|---|---|---|---|"]
    for mutant, fate in found:
        if fate not in NOTICED:
            why = reasons.get(_key(mutant), "no test runs it" if fate == "not run" else "")
            place = f"{str(mutant.path).removeprefix('src/rtmeter/')}, {mutant.where}"
            lines.append(f"| {place} | `{_cell(mutant.was)}` | `{_cell(mutant.now)}` | {why} |")
    text = "\n".join(lines) + "\n"
    print(text)
    if into_docs:
        page = DOCS.read_text()
        before, _, rest = page.partition(BEGIN)
        _, _, after = rest.partition(END)
        DOCS.write_text(before + BEGIN + text + END + after)


def _said(
    found: Sequence[tuple[Mutant, str]], totals: dict[str, int], share: float, at_least: int, seed: int
) -> str:
    tried, noticed = len(found), sum(fate in NOTICED for _, fate in found)
    late = sum(fate == "timeout" for _, fate in found)
    sure = binomtest(noticed, tried).proportion_ci(0.95, "exact")
    files = Counter(str(mutant.path) for mutant, _ in found)
    hits = Counter(str(mutant.path) for mutant, fate in found if fate in NOTICED)
    mutants = sum(totals[path] for path in files)
    by_size = sum(totals[path] * hits[path] / files[path] for path in files) / max(mutants, 1)
    drawn = "all" if share >= 1 else f"{at_least} of each file's at least, drawn with seed {seed}"
    return (
        f"{datetime.now(UTC):%Y-%m-%d}: {noticed:,} of {tried:,} mutants noticed "
        f"({_percent(noticed, tried)}, of so few {100 * sure.low:.0f} to {100 * sure.high:.0f} % with 95 % "
        f"confidence; {100 * by_size:.1f} % if each file counts by its mutants; {late:,} by running without "
        f"an end), of {sum(totals.values()):,} ({drawn})."
    )


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / max(whole, 1):.1f} %"


def _key(mutant: Mutant) -> str:
    return f"{mutant.path} {mutant.where}: {mutant.was} → {mutant.now}"


def _cell(code: str) -> str:
    return code.replace("|", "\\|")
