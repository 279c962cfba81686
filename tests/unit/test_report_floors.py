"""The floor under each middleware in the report: which cell it is, what is added to it, and where none is."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import pytest

from rtmeter import cli
from wakeups import draw, write_wakeups

RUN = Path("run")


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def add(name: str, adapter: str, later_ns: int = 0, transport: str | None = None, **changes: Any) -> None:
    """Five repeats of a cell that is so much later than the floor, on a machine that wanders."""
    facts = {"adapter_facts": {"transport": transport}} if transport else {}
    for repeat in range(1, 6):
        values = draw(repeat, 5000) + 100_000 * repeat + later_ns
        folder = RUN / f"{name}-r{repeat}"
        write_wakeups(folder, values, repeat=repeat, adapter=adapter, changes=changes | facts)


def section() -> str:
    """What the report says of floors, as text; empty where it says nothing."""
    assert cli.invoke(["report", str(RUN)]) == 0
    found = re.search(r'<section id="floor".*?</section>', (RUN / "report.html").read_text(), re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", found[0])).split()) if found else ""


def test_a_middleware_stands_beside_its_floor_over_the_same_transport() -> None:
    add("floor-udp", "posix", 0, "udp")
    add("floor-shm", "posix", -50_000, "shm")
    add("dds", "cyclonedds", 7_000, "udp")
    said = section()
    assert "dds floor-udp latency 5" in said
    assert "7.000" in said  # X at every quantile: each value is so much later
    assert "floor-shm" not in said


def test_a_floor_over_another_transport_says_so() -> None:
    add("floor-udp", "posix", 0, "udp")
    add("shared", "iceoryx", 7_000, "shm")
    assert "shared floor-udp (over udp, the cell over shm) latency" in section()


def test_a_middleware_without_a_floor_says_how_to_get_one() -> None:
    add("dds", "cyclonedds", 7_000)
    assert section().endswith(
        "No floor in this run: dds. A cell with adapter: posix and the same period, payload, scheduling, "
        "transport, drive and components in the campaign gives it one."
    )


def test_floors_that_cannot_be_told_apart_are_named() -> None:
    add("one", "posix", 0)
    add("two", "posix", 0)
    add("dds", "cyclonedds", 7_000)
    assert "fits dds in 2 cells: one, two" in section()


def test_bare_system_calls_need_no_floor() -> None:
    add("one", "posix", 0)
    assert section() == ""
