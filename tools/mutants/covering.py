"""Which tests run which line, and how long each takes: one run of the tests under coverage."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import coverage
import pytest

OPTIONS = ["-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not full_only"]


@dataclass(frozen=True, slots=True)
class Covering:
    """Tests (node ids) by file and line, and the seconds of each; without a mutant all of them pass."""

    lines: dict[str, dict[int, list[str]]]
    seconds: dict[str, float]

    def tests(self, path: Path, lines: tuple[int, int], budget_s: float) -> list[str]:
        """Those that run any of the lines, the quickest first, up to a budget; of lines that run on import
        only, those that run anything of the file, or if none do, of the files that import it."""
        known = self.lines.get(str(path), {})
        found = {test for line in range(lines[0], lines[1] + 1) for test in known.get(line, ())}
        found = found or {test for tests in known.values() for test in tests}
        found = found or {
            test
            for other, of_line in self.lines.items()
            if f"{module_of(path)} import" in Path(other).read_text()
            for tests in of_line.values()
            for test in tests
        }
        chosen: list[str] = []
        for test in sorted(found, key=lambda test: (self.seconds[test], test)):
            budget_s -= self.seconds[test]
            if budget_s < 0 and chosen:
                break
            chosen.append(test)
        return chosen


def module_of(path: Path) -> str:
    """Its name, as it is imported."""
    return str(path.with_suffix("")).removeprefix("src/").replace("/", ".")


def _spent_s() -> float:
    """Processor time of this process and of those that it has waited for."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


class _Watch:
    """Leaves out what simulates rates, which takes long and tells little at a reduced size."""

    def __init__(self, measured: coverage.Coverage) -> None:
        self._measured = measured
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if "simulate" not in getattr(item, "fixturenames", ())]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._measured.switch_context(item.nodeid)
        start = _spent_s()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = _spent_s() - start
            self._measured.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)


def cover(tests: Sequence[str], sources: Sequence[Path], kept: Path, *, beside: bool = False) -> Covering:
    """Runs the tests in a process of its own and keeps what was seen in a file, ``beside`` what is there.
    Tests that fail or are skipped here kill nothing."""
    child = os.fork()
    if not child:
        measured = coverage.Coverage(data_file=None, include=[str(path.resolve()) for path in sources])
        watch = _Watch(measured)
        measured.start()
        pytest.main([*OPTIONS, *tests], plugins=[watch])
        measured.stop()
        data = measured.get_data()
        lines = {
            str(path): {
                line: [name for name in names if name and name not in watch.failed]
                for line, names in data.contexts_by_lineno(str(path.resolve())).items()
            }
            for path in sources
        }
        seen = {"lines": lines, "seconds": watch.seconds, "failed": watch.failed}
        kept.write_text(json.dumps(_merged(json.loads(kept.read_text()), seen) if beside else seen))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status:
        raise SystemExit(f"the tests could not be run (status {status})")
    return load(kept)


def _merged(known: dict[str, Any], seen: dict[str, Any]) -> dict[str, Any]:
    """What was seen in place of what was known of the same tests."""
    lines: dict[str, dict[str, list[str]]] = {}
    for path in {*known["lines"], *seen["lines"]}:
        fresh = {str(line): names for line, names in seen["lines"].get(path, {}).items()}
        old = known["lines"].get(path, {})
        lines[path] = {
            line: [*(name for name in old.get(line, ()) if name not in seen["seconds"]), *fresh.get(line, ())]
            for line in {*old, *fresh}
        }
    failed = [name for name in known["failed"] if name not in seen["seconds"]] + seen["failed"]
    return {"lines": lines, "seconds": known["seconds"] | seen["seconds"], "failed": failed}


def load(kept: Path) -> Covering:
    """What an earlier run kept."""
    known = json.loads(kept.read_text())
    for test in known["failed"]:
        print(f"fails without a mutant, and is left out: {test}")
    by_line = {
        path: {int(line): names for line, names in lines.items()} for path, lines in known["lines"].items()
    }
    return Covering(by_line, known["seconds"])
