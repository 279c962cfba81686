"""What is left acquired of labgrid's places is known, and told to who has to release it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from rtmeter.errors import RtmeterError
from rtmeter.host import labgrid
from rtmeter.host.ending import LEFT

RELEASE = "labgrid-client -p shelf release"
REFUSED = "labgrid-client: Error: Place shelf is already acquired by desk/other."
OURS = "labgrid-client: Error: You have already acquired place shelf."


class Client:
    """labgrid-client, which answers each verb with an exit code and what it says, or not in time."""

    def __init__(self, **answers: tuple[int, str] | None) -> None:
        self.answers, self.left = answers, dict[str, bool]()

    def __call__(self, limit_s: float, command: list[str], **_: Any) -> subprocess.CompletedProcess[bytes]:
        verb = command[-1]
        self.left[verb] = RELEASE in LEFT
        answer = self.answers[verb]
        if answer is None:
            raise subprocess.TimeoutExpired(command, limit_s)
        return subprocess.CompletedProcess(command, answer[0], answer[1].encode())


@pytest.fixture(autouse=True)
def nothing_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(labgrid, "require_trusted", lambda *_, **__: None)
    yield
    LEFT.pop(RELEASE, None)


def held(monkeypatch: pytest.MonkeyPatch, client: Client) -> list[str]:
    """What is said while the place is held and given back."""
    monkeypatch.setattr(labgrid, "run_within", client)
    said = list[str]()
    with labgrid.acquired("shelf", said.append):
        client.left["held"] = RELEASE in LEFT
    return said


def test_one_that_is_held_would_be_left_until_it_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(acquire=(0, ""), release=(0, ""))
    assert held(monkeypatch, client) == []
    assert client.left == {"acquire": True, "held": True, "release": True}
    assert RELEASE not in LEFT


def test_one_that_was_held_before_is_left_to_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(acquire=(1, OURS))
    assert held(monkeypatch, client) == []
    assert client.left == {"acquire": True, "held": False}


def test_one_that_cannot_be_had_is_not_left(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RtmeterError, match="is already acquired by desk/other"):
        held(monkeypatch, Client(acquire=(1, REFUSED)))
    assert RELEASE not in LEFT


@pytest.mark.parametrize("answer", [None, (1, "no coordinator")])
def test_one_that_is_not_released_stays_left(
    monkeypatch: pytest.MonkeyPatch, answer: tuple[int, str] | None
) -> None:
    (said,) = held(monkeypatch, Client(acquire=(0, ""), release=answer))
    assert said.startswith("its place shelf is not released: ")
    assert RELEASE in LEFT


def test_one_that_may_have_been_acquired_too_late_is_told_with_how_to_release_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = Client(acquire=None)
    with pytest.raises(RtmeterError, match=f"did not say within .*: `{RELEASE}`") as caught:
        held(monkeypatch, client)
    assert (caught.value.field, caught.value.value) == ("place", "shelf")
    assert client.left == {"acquire": True}  # not released: it may have been this user's before
    assert RELEASE in LEFT


def test_without_the_client_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(RtmeterError, match="needs the program labgrid-client"):
        held(monkeypatch, Client())
    assert RELEASE not in LEFT
