"""What check-adapter says of a word that is in the name of no check."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from rtmeter.errors import RtmeterError
from rtmeter.measure.probe.probes import Probe
from rtmeter.selftest import adapter
from rtmeter.selftest.adapter.check import Check, passed

ROOMS = [["describe.before_start"], ["echo.cycle.spin", "echo.roundtrip.poll"]]


@pytest.fixture(autouse=True)
def _rooms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks that pass at once."""

    def room(names: list[str]) -> SimpleNamespace:
        return SimpleNamespace(
            checks=lambda _: [Check(name, lambda: passed("it was tried")) for name in names]
        )

    monkeypatch.setattr(adapter, "_ROOMS", [room(names) for names in ROOMS])


def names_of(only: str) -> list[str]:
    return [one.name for one in adapter.check_adapter(Probe("fake", Path("fake"), {}), only)]


def test_those_are_run_whose_name_has_the_word() -> None:
    assert names_of("") == [name for names in ROOMS for name in names]
    assert names_of("roundtrip") == ["echo.roundtrip.poll"]


@pytest.mark.parametrize(
    ("word", "remedy"),
    [
        ("ech0", "did you mean echo?"),
        ("roundtrp", "did you mean roundtrip?"),
        ("echo.cycle.poll", "did you mean echo.cycle.spin?"),
        ("xyz", "leave it out to see them all"),
    ],
)
def test_for_another_word_the_nearest_is_named(word: str, remedy: str) -> None:
    with pytest.raises(RtmeterError) as refused:
        names_of(word)
    assert (refused.value.field, refused.value.value, refused.value.remedy) == ("--only", word, remedy)
