"""`rtmeter archive check`: whether bound and outcome of a cell are those of its numbers."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from archives import written

from rtmeter.archive.add import add
from rtmeter.archive.check import check
from rtmeter.archive.tables import archive_at
from rtmeter.results.cells import find_cells
from synthetic import Made, usual, write_cell

BOUND = "has another bound than its misses give"
NO_BINS = "has a distribution, and says that it has none"
OUTCOME = "has an outcome that its misses, or its bound, rule out"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of three cells of one run of 3,000 releases, of which 25 missed: one passes, one is
    inconclusive, one fails by its lower bound; and of one of which none missed."""
    folder = tmp_path_factory.mktemp("misjudged")
    for name, ratio in (("passes", 0.02), ("open", 0.009), ("fails", 0.001)):
        delays = usual(3, 50, spikes=0.05, spike_us=900)
        made = Made(id=name, samples=3000, period_ns=10**7, delays=delays, miss_ratio=ratio)
        write_cell(folder / "results" / name, made)
    write_cell(folder / "results" / "clean", Made(id="clean", samples=3000, period_ns=10**7, miss_ratio=0.01))
    add(archive_at(folder / "archive"), find_cells(folder / "results"))
    assert check(archive_at(folder / "archive")) == (4, [])
    return folder / "archive"


CHANGED = {
    "upper = upper * 1.00001 WHERE id = 'passes'": {"passes": BOUND},
    "upper = upper * 0.99999 WHERE id = 'fails'": {"fails": BOUND},
    "design_effect = 1.001": {"passes": BOUND, "open": BOUND, "fails": BOUND, "clean": BOUND},
    "confidence = 0.96 WHERE id = 'open'": {"open": BOUND},
    "outcome = 'inconclusive' WHERE outcome = 'pass'": {"passes": OUTCOME, "clean": OUTCOME},
    "outcome = 'fail' WHERE id = 'passes'": {"passes": OUTCOME},
    "outcome = 'pass' WHERE id = 'open'": {"open": OUTCOME},
    "outcome = 'fail' WHERE id = 'open'": {"open": OUTCOME},
    "outcome = 'inconclusive' WHERE id = 'fails'": {"fails": OUTCOME},
    "outcome = NULL WHERE id = 'fails'": {"fails": OUTCOME},
    "miss_ratio = 0.02 WHERE id = 'open'": {"open": OUTCOME},
    "miss_ratio = NULL WHERE id = 'open'": {"open": OUTCOME},
    "criticality = 'hard' WHERE id = 'open'": {"open": OUTCOME},
    "measurement = 'own_loop', upper = upper * 1.1 WHERE id = 'passes'": {},  # by what it may have missed
    "horizon = NULL, upper = upper * 1.1 WHERE id = 'passes'": {},  # nothing to judge by
    "bins = NULL, upper = upper * 1.1 WHERE id = 'passes'": {"passes": NO_BINS},  # as of a histogram
    "criticality = 'hard' WHERE id = 'clean'": {},  # by its return level
}


@pytest.mark.parametrize("change", CHANGED)
def test_a_bound_and_an_outcome_are_those_of_the_numbers(template: Path, tmp_path: Path, change: str) -> None:
    archive = archive_at(Path(shutil.copytree(template, tmp_path / "archive")))
    names = {row["cell"]: row["id"] for row in archive.table("cells").to_pyarrow_table().to_pylist()}
    written(archive, f"UPDATE cells SET {change}")
    found = [flaw.message.removeprefix("cell ") for flaw in check(archive)[1]]
    said = {tuple(message.split(maxsplit=1)) for message in found}
    assert {(names[cell], what) for cell, what in said} == set(CHANGED[change].items())
