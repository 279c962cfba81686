"""Which factors tell the cells of a campaign apart, and stand on the first screen and in the matrix."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from report_page import page_of

from rtmeter.judge.layouts import told_apart
from rtmeter.judge.run_factors import effects_of_runs
from rtmeter.model import Requirement
from rtmeter.plots import factors
from rtmeter.report.matrix import choices, matrices, shown_axes
from rtmeter.results import store
from rtmeter.results.overview import cell_entries
from stored import write_run
from wakeups import write_wakeups

LOCKED = ("no", "yes")
HEAP = ("0", "8MiB")


def named(*places: tuple[str, str]) -> list[dict[str, str]]:
    """Named cells that set two options."""
    return [
        {"block": f"cell {n}", "lock_memory": locked, "prefault_heap": heap}
        for n, (locked, heap) in enumerate(places)
    ]


HALF = [one | {"apply": str(n in (1, 2))} for n, one in enumerate(named(*itertools.product(LOCKED, HEAP)))]
"""Half of the cells that three options make."""


@pytest.mark.parametrize(
    ("layouts", "told"),
    [
        (named(*itertools.product(LOCKED, HEAP)), ["lock_memory", "prefault_heap"]),
        (named(("no", "0"), ("yes", "0"), ("yes", "8MiB")), ["lock_memory", "prefault_heap"]),
        (named(("no", "0"), ("yes", "8MiB")), ["block"]),  # changed together: the first
        (HALF, ["block", "lock_memory", "prefault_heap", "apply"]),  # no two differ in one option alone
        (named(("no", "0"), ("no", "0"), ("yes", "0")), ["block", "lock_memory"]),  # more than they set
        (
            [one | {"load": load} for one in named(*itertools.product(LOCKED, HEAP)) for load in "ab"],
            ["lock_memory", "prefault_heap", "load"],
        ),
        (
            [{"variant": one["block"]} | one for one in named(*itertools.product(LOCKED, HEAP))],
            ["lock_memory", "prefault_heap"],
        ),
    ],
)
def test_a_name_is_no_factor_where_what_it_sets_spells_it_out(
    layouts: list[dict[str, str]], told: list[str]
) -> None:
    assert told_apart(layouts) == told


NAMES = ("slow-idle", "slow-busy", "fast-idle", "fast-busy")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four named cells, three times in turn: each of two options makes it four times as late, both together
    do not."""
    run = tmp_path_factory.mktemp("planted") / "run"
    places = list(enumerate(itertools.product((False, True), HEAP)))
    cells = [(repeat, *one) for repeat in (1, 2, 3) for one in places]
    write_run(run, {"cells": [f"{NAMES[place]}-r{repeat}" for repeat, place, _ in cells]}, None)
    generator = np.random.default_rng(7)
    for order, (repeat, place, (locked, heap)) in enumerate(cells):
        ns = 10_000 * (4 if locked != (heap != "0") else 1) * np.exp(generator.normal(0, 0.02))
        write_wakeups(
            run / f"{NAMES[place]}-r{repeat}",
            np.rint(generator.exponential(ns, 2_000)).astype(np.int64),
            repeat=repeat,
            requirement=Requirement(100_000, 0.01),
            adapter="null",
            changes={
                "started": f"2026-11-21T05:00:{order:02d}Z",
                "factors": {"block": NAMES[place], "lock_memory": locked, "prefault_heap": heap},
            },
        )
    return run


def test_the_first_screen_has_the_factors_and_their_interaction(run: Path) -> None:
    page = page_of(run, list(effects_of_runs([run], store.chunks)))
    head = page.text[: page.text.index("What was asked")]
    assert (
        "lock_memory yes against no: worse; it depends on prefault_heap: worse at 0, better at 8MiB" in head
    )
    assert "prefault_heap 8MiB against 0: worse; it depends on lock_memory: worse at no" in head
    assert "block" not in page.text, "neither there nor among the columns and filters"


def test_the_matrix_lies_over_what_named_cells_set(run: Path) -> None:
    cells = [(cell.id, cell) for cell in cell_entries(run)]
    (found,) = matrices(cells)
    assert (found.down, found.across, found.columns) == (("lock_memory",), "prefault_heap", HEAP)
    outcomes = {row: [one and one.outcome for one in squares] for row, squares in found.rows}
    assert outcomes == {("no",): ["pass", "fail"], ("yes",): ["fail", "pass"]}
    assert choices([cell for _, cell in cells]) == [("lock_memory", [*LOCKED]), ("prefault_heap", [*HEAP])]
    assert shown_axes([cell for _, cell in cells])[-2:] == ["lock_memory", "prefault_heap"]


def test_a_sparse_table_keeps_the_names(tmp_path: Path) -> None:
    """One option after the other: five cells in the sixteen places of four options."""
    for place in range(5):
        options = {f"option_{n}": n == place for n in range(1, 5)}
        changes = {"factors": {"block": f"cell {place}"} | options}
        write_wakeups(tmp_path / f"cell-{place}", np.full(1_500, 50_000), changes=changes)
    (found,) = matrices([(cell.id, cell) for cell in cell_entries(tmp_path)])
    assert (found.down, found.across, len(found.columns)) == ((), "block", 5)


def test_names_stand_in_the_order_of_the_campaign(tmp_path: Path) -> None:
    """In plots and matrices alike, whatever the order of the verdicts: numbers by what they are."""
    cells = [f"{name}-{period}" for name in ("normal", "fifo") for period in (10, 2)]
    write_run(tmp_path / "named", {"cells": cells}, None)
    for name, period in itertools.product(("normal", "fifo"), (10, 2)):
        axes = {"variant": name, "period": f"{period}ms"}
        write_wakeups(tmp_path / "named" / f"{name}-{period}", np.full(1_500, 50_000), axes=axes)
    entries = cell_entries(tmp_path / "named")
    assert [cell.id for cell in entries] == cells
    (found,) = matrices([(cell.id, cell) for cell in reversed(entries)])
    assert [row for row, _ in found.rows] == [("normal",), ("fifo",)]
    assert found.columns == ("2ms", "10ms")
    panels = factors.laid_out([cell.record for cell in entries if cell.record], ["variant"])
    assert [title for title, _ in panels[0]] == ["variant normal", "variant fifo"]


def test_a_plot_takes_what_compare_takes_for_a_factor(run: Path) -> None:
    records = [cell.record for cell in cell_entries(run) if cell.record]
    (row,) = factors.laid_out(records, ["block"])
    assert [title for title, _ in row] == [f"block {name}" for name in NAMES]
