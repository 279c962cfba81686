"""Names in a campaign that no file can have: told with their line before anything is measured."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rtmeter.campaign.file import read_campaign, resolve_script
from rtmeter.errors import RtmeterError
from rtmeter.results import store

W = "cells:\n- measurement: wakeup\n  adapter: posix\n"
NULL = 'cells:\n- measurement: wakeup\n  adapter: "null"\n'
CHAIN = "cells:\n- measurement: chain\n  adapter: posix\n"


def test_an_id_is_as_long_as_a_folder_can_be_called(tmp_path: Path) -> None:
    name = "x" * (255 - len(store.PARTIAL))
    path = tmp_path / "c.yaml"
    path.write_text(f"name: {name}\n{W}  name: {name}")
    (cell,) = read_campaign(path).cells
    assert cell.id == name
    with store.NewCell(tmp_path / name) as new:
        assert new.folder.is_dir()


@pytest.mark.parametrize(
    ("text", "line", "field", "message"),
    [
        (W + f"  name: {'x' * 248}", 4, "cells.0.name", "too long for a folder's name; give a shorter one"),
        (W + f"  name: {'x' * 243}\n  apply: [before_init, after_init]", 4, "cells.0.name",
         "is an id too long for a folder's name; give the block a shorter name, or split it"),
        (W + f"  variants:\n    {'x' * 240}: null", 2, "cells.0", "is an id too long"),
        (f"description: x\nname: {'x' * 248}\n" + W, 2, "name", "is too long for a folder's name"),
        (NULL + '  script: "\\0"', 4, "cells.0.script", "has a NUL, or half"),
        (NULL + '  variants: {"a\\ud83d": null}', 4, "cells.0.variants", "has a NUL, or half"),
        (NULL + '  conditions: {qdisc: {"\\0": pfifo}}', 4, "cells.0.conditions.qdisc", "has a NUL, or half"),
        (NULL + f"  script: {'x' * 300}", 4, "script", "is no path"),
        (CHAIN + '  graph: "\\ud83d"', 4, "cells.0.graph", "has a NUL, or half"),
    ],
)  # fmt: skip
def test_what_no_file_can_be_called_is_refused_with_its_line(
    tmp_path: Path, text: str, line: int, field: str, message: str
) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(text)
    with pytest.raises(RtmeterError, match=message) as caught:
        read_campaign(path)
    assert (caught.value.field, caught.value.where) == (field, f"{path}:{line}")


@pytest.mark.parametrize(
    ("text", "line", "several"),
    [
        (W + "  name: a/b\n- {measurement: wakeup, adapter: posix, name: a-b}", 5, "the blocks"),
        (W + "  name: a\n  variants: {v/w: {period: 1ms}, v-w: {period: 2ms}}", 2, "its variants or values"),
        (W + '  name: "a/"\n  variants: {b: null}\n' + W.partition("\n")[2] + "  name: a/b", 6, "the blocks"),
    ],
)
def test_names_of_one_folder_are_refused_with_what_tells_them_apart(
    tmp_path: Path, text: str, line: int, several: str
) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(text)
    with pytest.raises(RtmeterError, match=f"name {several} apart by letters, digits, . or _") as caught:
        read_campaign(path)
    assert caught.value.where == f"{path}:{line}"
    assert f"is also the id of a cell of {path}:2" in str(caught.value)


@pytest.mark.parametrize("path", ["\0", "\ud83d", "x" * 300])
@pytest.mark.parametrize("option", ["script", "graph"])
def test_a_path_that_no_file_can_have_is_none(tmp_path: Path, option: str, path: str) -> None:
    with pytest.raises(RtmeterError, match="is no path; name a file") as caught:
        resolve_script({option: path}, tmp_path)
    assert caught.value.field == option


SOURCE = "stages:\n  a: {period: 10ms}\n"
LONG = "  s0: {inputs: [a]}\n" + "".join(f"  s{n}: {{inputs: [s{n - 1}]}}\n" for n in range(1, 2000))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SOURCE + "  b: {inputs: [a], process: ../../b}", "in a process '../../b'; name it by letters"),
        (SOURCE + "  b: {inputs: [a], process: /tmp/b}", "in a process '/tmp/b'"),
        (SOURCE + f"  b: {{inputs: [a], process: {'x' * 201}}}", "in a process 'xxx"),
        (SOURCE + f"  {'x' * 201}: {{inputs: [a]}}", "has a stage 'xxx"),
        (SOURCE + '  b: {inputs: [a], process: "\\0"}', "g.yaml:3: stages.b.process: has a NUL, or half"),
        (SOURCE + "  a: {period: 20ms}", "g.yaml:3: a: is there twice, first in line 2; remove one"),
        ("[" * 5000, "g.yaml: is nested too deeply"),
        (SOURCE + LONG, "has too long a path; measure a part of it"),
    ],
)  # fmt: skip
def test_a_graph_that_cannot_be_measured_is_refused_with_the_line_of_its_name(
    tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "g.yaml").write_text(text)
    path = tmp_path / "c.yaml"
    path.write_text(CHAIN + "  graph: g.yaml")
    with pytest.raises(RtmeterError, match=re.escape(message)) as caught:
        read_campaign(path)
    assert (caught.value.field, caught.value.where) == ("graph", f"{path}:4")


def test_a_process_may_be_called_as_a_file_is(tmp_path: Path) -> None:
    (tmp_path / "g.yaml").write_text(SOURCE + f"  b: {{inputs: [a], process: a-1.{'x' * 196}}}\n")
    path = tmp_path / "c.yaml"
    path.write_text(CHAIN + "  graph: g.yaml")
    assert read_campaign(path).cells[0].config["graph"]["stages"][1]["process"] == f"a-1.{'x' * 196}"


def test_graphs_of_a_list_are_those_beside_the_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which files of their names lie where rtmeter is started is all the same."""
    (tmp_path / "started").mkdir()
    monkeypatch.chdir(tmp_path / "started")
    for name in ("g", "h"):
        (tmp_path / f"{name}.yaml").write_text(SOURCE + f"  {name}: {{inputs: [a]}}\n")
        Path(f"{name}.yaml").write_text(SOURCE + "  b: {inputs: [a]}\n")
    path = tmp_path / "c.yaml"
    path.write_text(CHAIN + "  graph: [g.yaml, h.yaml]")
    graphs = [cell.config["graph"] for cell in read_campaign(path).cells]
    assert [graph["stages"][1]["name"] for graph in graphs] == ["g", "h"]
