"""Files to import, written by a test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """``write(text, name)``: a file with that text."""

    def file(text: str, name: str = "file.txt") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return file
