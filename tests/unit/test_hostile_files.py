"""Campaigns, results and logs of others: what they say is shown, never obeyed; what they ask is bounded."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from rtmeter import cli
from rtmeter.campaign.file import read_campaign
from rtmeter.errors import RtmeterError
from rtmeter.samples.header import parse_object
from stored import cell_json
from synthetic import Made, write_cell

ESCAPE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"


def test_aliases_of_aliases_are_counted(tmp_path: Path) -> None:
    levels = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    bomb = tmp_path / "bomb.yaml"
    bomb.write_text("a0: &a0 [x]\n" + "\n".join(levels) + "\n")
    with pytest.raises(RtmeterError, match="has more than 100,000 values"):
        read_campaign(bomb)


@pytest.mark.parametrize("text", ["[" * 50_000, "a: &a [*a]", "{a: " * 50_000])
def test_nesting_is_bounded(tmp_path: Path, text: str) -> None:
    deep = tmp_path / "deep.yaml"
    deep.write_text(text)
    with pytest.raises(RtmeterError, match="is nested too deeply"):
        read_campaign(deep)


def test_no_tag_makes_an_object(tmp_path: Path) -> None:
    campaign = tmp_path / "tag.yaml"
    campaign.write_text(f"name: !!python/object/apply:os.system ['touch {tmp_path}/canary']\n")
    with pytest.raises(RtmeterError):  # of the tag only its plain value is left
        read_campaign(campaign)
    assert not (tmp_path / "canary").exists()


def test_a_cell_that_is_nested_without_end_is_none(tmp_path: Path) -> None:
    (tmp_path / "cell.json").write_text('{"format": ' + "[" * 200_000)
    with pytest.raises(RtmeterError, match="is no rtmeter-cell"):
        cell_json(tmp_path)


@pytest.mark.parametrize("command", ["summary", "verdict", "compare"])
def test_what_a_terminal_would_heed_is_shown_as_escapes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    doubts = [{"type": ESCAPE, "message": ESCAPE, "hint": ESCAPE}]
    changes = {"warnings": doubts, "adapter": ESCAPE, "machine": {"kernel": ESCAPE}}
    for name in ("a", "b"):
        write_cell(
            tmp_path / name, Made(id=f"{name}{ESCAPE}", samples=300, axes={"x": ESCAPE}, changes=changes)
        )
    paths = [str(tmp_path / "a"), str(tmp_path / "b")] if command == "compare" else [str(tmp_path)]
    cli.invoke([command, *paths])
    said = "".join(capsys.readouterr())
    assert said and not set(ESCAPE) - set("0;owned]2J[31m") & set(said)
    if command != "compare":
        assert r"\x1b" in said


def test_errors_and_logs_are_shown_so_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(["summary", str(tmp_path / ESCAPE)]) == 1
    said = capsys.readouterr().err
    assert "\x1b" not in said and r"\x1b" in said
    assert parse_object(json.dumps({ESCAPE: [ESCAPE]}).encode()) == {
        text: [text] for text in [r"\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"]
    }


@pytest.mark.parametrize("kind", ["pipe", "own output"])
@pytest.mark.parametrize(
    "line", ["report {} -o {}", "export {} --format csv -o {}", "watch {} --once --metrics {}"]
)
def test_what_is_no_ordinary_file_is_never_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, kind: str
) -> None:
    write_cell(tmp_path / "cell", Made(samples=20))
    out = tmp_path / "out"
    if kind == "pipe":
        os.mkfifo(out)
    else:
        out.symlink_to("/proc/self/fd/1")
    assert cli.invoke(line.format(tmp_path / "cell", out).split()) == 1
    assert "is no ordinary file" in capsys.readouterr().err
    assert out.is_fifo() if kind == "pipe" else out.is_symlink()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["cell", "out"]


@pytest.mark.parametrize("out", [".", "", ".."])
def test_a_file_is_never_written_over_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], out: str
) -> None:
    write_cell(tmp_path / "cell", Made(samples=20))
    monkeypatch.chdir(tmp_path)
    assert cli.invoke(["report", "cell", "-o", out]) == 1
    assert f"-o = '{out or '.'}': is a folder; name a file in it" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["import", "graph"])
def test_no_command_waits_for_who_writes_into_a_pipe(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert cli.invoke([command, str(tmp_path / "pipe")]) == 1
    assert "no regular file" in capsys.readouterr().err
