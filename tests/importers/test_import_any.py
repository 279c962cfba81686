"""Files of no tool, and formats asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from imported import refused

from rtmeter.errors import RtmeterError
from rtmeter.importers import read

RTTEST = "iteration timestamp latency minor_pagefaults major_pagefaults\n0 0 5 0 0\n1 9 5 0 0\n"


@pytest.mark.parametrize("text", ["", "hello\n", "{}", "[1]", '{"a": 1}', "k,release_ns\n0,1\n"])
def test_a_file_of_no_known_tool(text: str, write) -> None:
    refused(write(text))


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "binary"
    path.write_bytes(b"\x89RTM\xff\xfe")
    assert refused(path).message == "is not text"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert "no such file" in refused(tmp_path / "none").message


def test_an_unknown_format(tmp_path: Path) -> None:
    with pytest.raises(RtmeterError, match="is no format") as caught:
        read(tmp_path / "none", "excel")
    assert caught.value.field == "--format" and "rttest" in (caught.value.remedy or "")


def test_the_wrong_format(write) -> None:
    refused(write(RTTEST), "cyclictest-json")
    refused(write(RTTEST), "timer2020-series")
