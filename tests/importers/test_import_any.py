"""Files of no tool, and formats asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from imported import DATA, refused

from rtmeter import cli
from rtmeter.errors import RtmeterError
from rtmeter.importers import cells, read
from rtmeter.model import Requirement
from rtmeter.results import store
from rtmeter.results.record import CellRecord
from tool_files import cyclictest

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


def test_files_of_several_machines_are_of_no_one(write) -> None:
    files = [
        write(json.dumps(cyclictest(sysinfo={"nodename": name})), f"{at}.json")
        for at, name in enumerate(("near", "near", "far"))
    ]
    imports = cells.read_files(files, None, None)
    named = [cells.machine_of(some) for some in (imports, imports[:2], imports[2:])]
    assert named == [cells.UNKNOWN_MACHINE, "near", "far"]


def test_a_format_that_was_never_tried_on_a_tools_own_file_is_doubted(write, tmp_path: Path) -> None:
    for text, doubted in ((RTTEST, True), (json.dumps(cyclictest()), False)):
        (one,) = cells.read_files([write(text)], None, None)
        record = cells.content_of(one, tmp_path, None)
        assert ("format_from_source" in {doubt.type for doubt in record.warnings}) == doubted


def test_an_import_has_its_folder_for_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From before its first cell is written; with none it leaves nothing."""
    monkeypatch.chdir(tmp_path)
    write, claimed = cells.write_import, list[Path]()

    def beside_another(one: cells.Import, folder: Path, asked: Requirement | None) -> CellRecord:
        claimed.append(folder)
        assert store.new_run_folder(Path("results"), cells.CAMPAIGN, folder.parts[1]) != folder
        if len(claimed) == 1:
            raise RtmeterError("disk full")
        return write(one, folder, asked)

    monkeypatch.setattr(cells, "write_import", beside_another)
    assert cli.invoke(["import", str(DATA / "cyclictest.json")]) == 1
    assert list(tmp_path.iterdir()) == []
    assert cli.invoke(["import", str(DATA / "cyclictest.json")]) == 0
    assert len(claimed) == 3 and (claimed[1] / "run.json").is_file()
