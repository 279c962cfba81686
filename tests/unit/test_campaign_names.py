"""Names in a campaign that no file can have: told with their line before anything is measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtmeter.campaign.file import read_campaign
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
        (NULL + '  script: "\\0"', 4, "script", "is no path"),
        (NULL + '  script: "\\ud83d"', 4, "script", "is no path"),
        (NULL + f"  script: {'x' * 300}", 4, "script", "is no path"),
        (CHAIN + '  graph: "\\0"', 4, "graph", "is no path"),
        (CHAIN + '  graph: "\\ud83d"', 4, "graph", "is no path"),
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
