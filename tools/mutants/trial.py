"""One mutant in one forked process: its source in the place of the file's, and the tests that run it."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import resource
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import CodeType, ModuleType
from typing import Literal

import pytest
from covering import OPTIONS, module_of
from mutations import Mutant

Fate = Literal["killed", "survived", "timeout", "not run"]

ROOT = Path(__file__).resolve().parents[2]
MOST_BYTES = 6 * 2**30
SLOW = (
    *("numpy", "scipy.special", "scipy.stats", "scipy.optimize", "scipy.signal", "hypothesis", "pyarrow"),
    *("pyarrow.parquet", "duckdb", "pydantic", "jinja2", "yaml", "rich.console", "typer", "hdrh.histogram"),
    *("google_crc32c", "altair", "ruptures", "pyextremes", "mcap.reader", "pandas"),
)
"""Packages that are imported once, before any mutant."""


def warm_up() -> None:
    """What mutants share; nothing of rtmeter, which each imports anew."""
    for name in SLOW:
        with suppress(ImportError):
            importlib.import_module(name)


class _Mutated(importlib.abc.MetaPathFinder, importlib.machinery.SourceFileLoader):
    def __init__(self, mutant: Mutant) -> None:
        super().__init__(module_of(mutant.path), str(ROOT / mutant.path))
        self._source = mutant.source

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        return (
            importlib.util.spec_from_file_location(name, self.path, loader=self)
            if name == self.name
            else None
        )

    def get_code(self, name: str) -> CodeType:
        return compile(self._source, self.path, "exec", dont_inherit=True)


def _run(mutant: Mutant, tests: list[str], most_s: int, output: Path) -> None:
    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    for stream in (1, 2):
        os.dup2(file, stream)
    resource.setrlimit(resource.RLIMIT_CPU, (most_s, most_s + 5))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    sys.meta_path.insert(0, _Mutated(mutant))
    code = pytest.main(["-x", *OPTIONS, "-o", f"timeout={6 * most_s}", *tests])
    os._exit(int(code))


def fates(
    trials: Iterator[tuple[Mutant, list[str]]], jobs: int, most_s: int, output: Path
) -> Iterator[tuple[Mutant, Fate]]:
    """What becomes of each mutant, as they end; ``jobs`` at a time."""
    running: dict[int, Mutant] = {}
    waiting = True
    while waiting or running:
        while waiting and len(running) < jobs:
            trial = next(trials, None)
            if trial is None:
                waiting = False
                break
            mutant, tests = trial
            if not tests:
                yield mutant, "not run"
                continue
            child = os.fork()
            if not child:
                os.setpgid(0, 0)
                try:
                    _run(mutant, tests, most_s, output / f"{os.getpid()}.txt")
                finally:
                    os._exit(99)
            running[child] = mutant
        if running:
            child, status = os.wait()
            mutant = running.pop(child)
            with suppress(ProcessLookupError):  # what a test left behind
                os.killpg(child, 9)
            yield mutant, _fate(mutant, status, output / f"{child}.txt")


def _fate(mutant: Mutant, status: int, output: Path) -> Fate:
    if os.WIFSIGNALED(status):
        return "timeout"
    code = os.WEXITSTATUS(status)
    text = output.read_text(errors="replace")
    output.unlink()
    if code == pytest.ExitCode.OK:
        return "survived"
    if code in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED, 99):
        return "killed"  # a module that cannot be imported interrupts the collection
    if code == pytest.ExitCode.USAGE_ERROR and ("ImportError while" in text or "\nERROR tests/" in text):
        return "killed"  # or ends it, where a file of tests cannot be imported any more
    print(f"{mutant.name}: pytest ended with {code}\n{text[-2000:]}")
    return "not run"
