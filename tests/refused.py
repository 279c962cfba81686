"""What an option that has keys of its own refuses, as a campaign and as the command line names it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rtmeter.cli.cell_options import as_flag
from rtmeter.errors import RtmeterError


def refused(asked: Callable[[Any], object], written: Any, field: str, words: str, flag: str) -> None:
    """It is refused by this field, with these words and a remedy; on the command line by the flag."""
    with pytest.raises(RtmeterError) as caught:
        asked(written)
    assert caught.value.field == field and caught.value.remedy
    assert words in str(caught.value)
    assert as_flag(caught.value).field == flag
