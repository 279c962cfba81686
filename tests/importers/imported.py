"""What the tests of importers share."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtmeter.errors import RtmeterError
from rtmeter.importers import read

DATA = Path(__file__).parent / "data"


def refused(path: Path, form: str | None = None) -> RtmeterError:
    """The error that reading a file ends with; it names the file and what to do."""
    with pytest.raises(RtmeterError) as error:
        read(path, form)
    assert error.value.where is not None and error.value.where.startswith(str(path))
    assert error.value.remedy or error.value.value
    return error.value
