"""A qdisc that tc does not tell of is not taken for one that is gone."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rtmeter import cli
from rtmeter.campaign.condition_options import SystemSettings
from rtmeter.conditions.journal import FILE, Journal
from rtmeter.conditions.network import Qdisc
from rtmeter.conditions.restore import restore
from rtmeter.conditions.settings import Settings
from rtmeter.errors import RtmeterError
from rtmeter.host.root import Root

OURS, BEFORE = "7274: pfifo limit 77p", "0: noqueue"
SLOW = TimeoutError(errno.ETIMEDOUT, "tc did not end within 20 s")
FORBIDDEN = (255, 'setting the network namespace "left" failed: Operation not permitted\n')


@dataclass(frozen=True, slots=True)
class WithTc(Root):
    """This machine, whose tc gives the answers in turn, the last one for ever."""

    answers: list[tuple[int, str] | OSError] = field(default_factory=list)

    def run(self, command: Sequence[str]) -> tuple[int, str]:
        assert command[0] == "tc"
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, OSError):
            raise answer
        return answer

    def has_program(self, name: str) -> bool:
        return name == "tc"


@pytest.fixture
def left(state_folder: Path) -> Path:
    """The journal of a run that was killed while its qdisc stood."""
    Journal(Root()).intend("qdisc.eth0", Qdisc("eth0"), BEFORE, OURS)
    return state_folder / FILE


def test_restore_without_tc_keeps_the_journal(
    left: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert cli.invoke(["restore"]) == 1
    said = capsys.readouterr().out
    assert f"root qdisc of eth0: could not be put back to '{BEFORE}': there is no program tc\n" in said
    assert left.exists()


@pytest.mark.parametrize("answer", [SLOW, FORBIDDEN, (127, "sh: tc: not found\n"), (1, "")])
def test_what_tc_does_not_tell_is_not_gone(left: Path, answer: tuple[int, str] | OSError) -> None:
    restored = restore(WithTc(answers=[answer]))
    assert [one.ending for one in restored.endings] == ["failed"]
    assert restored.kept == left and left.exists()


@pytest.mark.parametrize(
    "answer",
    [
        (1, 'Cannot find device "eth0"\n'),
        (1, "can't find device 'eth0'\n"),
        (255, 'Cannot open network namespace "left": No such file or directory\n'),
    ],
)
def test_a_device_that_is_not_there_is_gone(left: Path, answer: tuple[int, str]) -> None:
    restored = restore(WithTc(answers=[answer]))
    assert [one.ending for one in restored.endings] == ["gone"]
    assert restored.whole and not left.exists()


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ([SLOW], "the qdisc of eth0 cannot be read: tc did not end within 20 s; see what `tc qdisc show"),
        ([(0, ""), SLOW], "root qdisc of eth0 cannot be read: tc did not end within 20 s"),
        ([(0, ""), (0, ""), (0, ""), SLOW], "root qdisc of eth0 cannot be read: tc did not end within 20 s"),
    ],
)
def test_a_run_does_not_begin_where_tc_does_not_tell(
    answers: list[tuple[int, str] | OSError], said: str, state_folder: Path
) -> None:
    asked = SystemSettings.model_validate({"qdisc": {"eth0": "pfifo limit 77"}})
    with pytest.raises(RtmeterError) as raised, Settings(asked, WithTc(answers=list(answers))):
        pass
    assert said in str(raised.value) and raised.value.field == "conditions.qdisc.eth0"
    assert (state_folder / FILE).exists() == (len(answers) == 4)
