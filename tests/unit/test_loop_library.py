"""Which library of librtmeter a Python program's own loop loads."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from rtmeter.errors import RtmeterError
from rtmeter.loop.library import NAME, library


def loaded(monkeypatch: pytest.MonkeyPatch, error: OSError | None = None) -> list[str]:
    """The files that are loaded for it."""
    found: list[str] = []

    def load(name: str, **_: Any) -> MagicMock:
        found.append(name)
        if error is not None:
            raise error
        return MagicMock()

    monkeypatch.setattr(ctypes, "CDLL", load)
    library.__wrapped__()
    return found


def test_one_that_is_named_goes_before_all_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "rtmeter"
    monkeypatch.setattr(sys.modules[library.__module__], "__file__", str(package / "loop" / "library.py"))
    own, named = package / "lib" / NAME, tmp_path / "named.so"
    assert loaded(monkeypatch) == [NAME], "the system's"
    own.parent.mkdir(parents=True)
    own.touch()
    assert loaded(monkeypatch) == [str(own)]
    monkeypatch.setenv("RTMETER_LIBRARY", str(named))
    assert loaded(monkeypatch) == [str(own)], "it is not there"
    named.touch()
    assert loaded(monkeypatch) == [str(named)]


def test_one_that_cannot_be_loaded_is_named_with_what_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RtmeterError, match=r"cannot be loaded: wrong ELF class; .* set RTMETER_LIBRARY"):
        loaded(monkeypatch, OSError("wrong ELF class"))
