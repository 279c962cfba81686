"""What the machine refuses a command is an error like any other, never a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rtmeter import cli


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_output_that_a_full_disk_refuses_is_an_error(options: list[str]) -> None:
    """More than a buffer holds, and less."""
    for words in (
        ["plan", "--deadline", "1ms", "--miss-ratio", "1e-3", "--period", "1ms"],
        ["plan", "--help"],
    ):
        with Path("/dev/full").open("w") as full:
            command = [sys.executable, "-m", "rtmeter", *words, *options]
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
        assert (done.returncode, done.stderr) == (
            1,
            "rtmeter: no space left on device; see to that: the path, its permissions, room on its disk\n",
        )


def test_a_name_that_no_file_can_have_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(["recover", "a" * 300]) == 1
    assert "aaa: file name too long; " in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    ["run loop.yaml --out {}", "run loop.yaml --out={}", "verdict {} --json", "sql {}", "check --on {}"],
)
def test_words_that_are_no_text_are_refused_by_every_command(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = os.fsdecode(b"x\xff")
    assert cli.invoke(words.format(bad).split()) == 1
    said = capsys.readouterr().err.strip()
    assert said.startswith("rtmeter: argument = '")
    assert said.endswith(r"x\udcff': is no UTF-8; write it, and name files, in UTF-8")


def test_a_folder_that_is_no_text_is_an_error_where_text_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def written(path: Path) -> int:
        return len(str(path.absolute()).encode())

    monkeypatch.setattr("rtmeter.cli.commands.recover.command", written)
    monkeypatch.setattr(cli, "_built", cli._built.__wrapped__)
    (folder := tmp_path / os.fsdecode(b"x\xff")).mkdir()
    monkeypatch.chdir(folder)
    assert cli.invoke(["recover", "log"]) == 1
    assert r"x\udcff': is no UTF-8; write it, and name files, in UTF-8" in capsys.readouterr().err


def test_days_that_no_calendar_has_are_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(["archive", "prune", str(tmp_path), "--samples-days", "9223372036854775807"]) == 1
    assert "--samples-days" in capsys.readouterr().err


@pytest.mark.parametrize(("days", "said"), [("x", "a valid integer"), ("-1", "greater than or equal to 0")])
def test_a_wrong_value_is_quoted_with_its_option(
    days: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.invoke(["archive", "prune", "--samples-days", days, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["error"] == {
        "field": "--samples-days",
        "value": days,
        "message": f"should be {said}",
        "remedy": "see `rtmeter archive prune --help`",
        "where": None,
    }
