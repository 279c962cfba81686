"""docs/add-a-middleware.md says which methods are called when: compared with the calls of the templates,
whose adapters are wrapped for that (tests/probe/wrapped_probe.cpp)."""

from __future__ import annotations

import itertools
import os
import subprocess
from pathlib import Path

import pytest
from pages import ROOT

from rtmeter.measure.probe.probes import describe
from rtmeter.model import TWO_ENDS
from rtmeter.selftest.adapter.running import CheckedProbe, ways

PAGE = ROOT / "docs" / "add-a-middleware.md"
WRAPPED = ROOT / "build" / "release" / "tests" / "probe" / "wrapped"
BEGIN, END = "<!-- calls -->\n", "<!-- end of calls -->"
HEAD = "| measurement | drive | receive | calls, in the order of the first of each |\n|---|---|---|---|\n"
RARE = ("interrupt", "describe")
"""Methods that are called besides, when a run ends or is asked for: their place in the order is no rule."""


def traced(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> list[str]:
    """The table's rows of one template."""
    rows = []
    subject = CheckedProbe(describe(name, WRAPPED / f"rtmeter-probe-{name}"), folder)
    for number, way in enumerate(ways(subject.facts)):
        if way.measurement == "wakeup":
            continue
        trace = folder / f"{name}-{number}"
        monkeypatch.setenv("RTMETER_TEST_TRACE", str(trace))
        subject.complete(way.config)
        kind = ".".join(filter(None, (way.measurement, way.config.get("mode"))))
        ends = (
            [(kind, "")]
            if way.measurement not in TWO_ENDS
            else [(f"{kind}, client", ""), (f"{kind}, server", ".server")]
        )
        for end, suffix in ends:
            calls = [line.split() for line in Path(f"{trace}{suffix}").read_text().splitlines()]
            methods = (
                f"`{method}`" + ("" if thread == "measured" else f" ({thread})")
                for method, thread in calls
                if method not in RARE
            )
            drive, receive = (way.config.get(key, "–") for key in ("drive", "receive"))
            rows.append(f"| {end} | {drive} | {receive} | {', '.join(methods)} |\n")
    return rows


@pytest.mark.parametrize(
    ("words", "code", "refused"),
    [
        (
            "drives.timer = spin: timer.periodic needs spin, which this adapter does not have; implement it",
            1,
            True,
        ),
        ("liba.so: cannot open shared object file", 127, False),
        ("", 0, False),
    ],
)
def test_the_build_refuses_what_lists_more_than_it_has(
    tmp_path: Path, words: str, code: int, refused: bool
) -> None:
    probe = tmp_path / "probe"
    probe.write_text(f"#!/bin/sh\ntest $1 = --describe && echo '{words}' >&2\nexit {code}\n")
    probe.chmod(0o755)
    command = ["cmake", "-D", f"PROBE={probe}", "-P", ROOT / "cmake" / "RtmeterDescribe.cmake"]
    asked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (asked.returncode != 0) == refused
    assert not refused or "needs spin" in asked.stderr


def test_the_page_says_which_methods_are_called_when(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not WRAPPED.is_dir():
        pytest.skip("the C++ tests are not built")
    found = [traced(tmp_path, monkeypatch, name) for name in ("template", "two-processes")]
    table = HEAD + "".join(itertools.chain(*found))
    page = PAGE.read_text()
    written = page[page.index(BEGIN) + len(BEGIN) : page.index(END)]
    if os.environ.get("RTMETER_WRITE"):
        PAGE.write_text(page.replace(written, table))
    assert written == table
