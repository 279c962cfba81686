"""What ends with a recording of threads, if something on the way does not."""

from __future__ import annotations

import select
import subprocess
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from rtmeter.errors import RtmeterError
from rtmeter.explain.events import Trace
from rtmeter.host.ending import STARTED
from rtmeter.host.root import Root
from rtmeter.measure.programs import attaching
from rtmeter.measure.programs.attached_all import Together
from rtmeter.measure.programs.attaching import Attached


@pytest.mark.parametrize("failing", ["first", "second", "stop"])
def test_whatever_fails_all_that_follows_is_ended(failing: str, tmp_path: Path) -> None:
    first, second, told = Mock(), Mock(), Mock()
    attached: Any = Attached([1], tmp_path, Root(), follow=[first, second], told=told)
    recorder = attached._recorder = Mock(marks=[], end_ns=7)
    recorder.trace.return_value = Trace()
    recorder.tally.return_value.cut = False
    of = {"first": first.end, "second": second.end, "stop": recorder.stop}
    of[failing].side_effect = OSError("the disk is full")
    with pytest.raises(OSError, match="the disk is full"):
        attached.__exit__(None, None, None)
    end_ns = None if failing == "stop" else 7
    for one in (first, second):
        one.end.assert_called_once_with(end_ns, given_up=False)
    told.end.assert_called_once_with()
    recorder.tidy.assert_called_with()


def test_what_writes_rows_is_begun_once_the_rest_is(tmp_path: Path) -> None:
    """Nobody would end it if that cannot be."""
    together: Any = Together.__new__(Together)
    together._cell = Mock(config={"attach": {"period_given": False}, "judge": "completion"}, requirement=None)
    together._recorded, together._root = None, Root()
    together._stack, together.tasks = ExitStack(), [Mock(tid=1)]
    together.program, together.recording = Mock(is_32_bit=False), Mock(told=None)
    together.recording.into.side_effect = RtmeterError("no instance", field="explain")
    before = threading.active_count()
    with together._stack, pytest.raises(RtmeterError, match="no instance"):
        together.recorded(tmp_path / "cell")
    assert threading.active_count() == before


@pytest.fixture
def silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[str]]:
    """The helpers that are started; they say nothing."""
    popen, found = subprocess.Popen, list[subprocess.Popen[str]]()

    def start(command: list[str], **how: Any) -> subprocess.Popen[str]:
        found.append(popen(["sleep", "3600"], **how))
        return found[-1]

    monkeypatch.setattr(attaching.subprocess, "Popen", start)
    return found


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda *_: ([], [], []), "gets no trace instance: its helper said nothing in 60 s"),
        (lambda *asked: (STARTED.kill(), select.select(*asked))[1], "gets no trace instance: ;"),
    ],
    ids=["at the limit", "asked twice to end"],
)
def test_a_helper_that_says_nothing_is_killed(
    answer: Callable[..., Any],
    said: str,
    silent: list[subprocess.Popen[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attaching, "select", SimpleNamespace(select=answer))
    monkeypatch.setattr(attaching, "_ENDS_S", 0.01)
    with pytest.raises(RtmeterError, match=said), attaching._helped("name", "group", Root()):
        pass
    assert [helper.poll() for helper in silent] == [-9]
