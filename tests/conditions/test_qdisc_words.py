"""What tc is told: a qdisc of ours is taken as it is; where none was chosen before, ours is taken away."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from rtmeter.conditions.network import Qdisc, qdiscs
from rtmeter.errors import RtmeterError
from rtmeter.host.root import Root

WORDS = "pfifo limit 77"
HANDLE = f"{zlib.crc32(WORDS.encode()) % 0xFFFE + 1:x}:"


@dataclass(frozen=True, slots=True)
class WithTc(Root):
    """A machine whose tc shows this, and notes what else it is told."""

    shown: str = ""
    told: list[list[str]] = field(default_factory=list)

    def run(self, command: Sequence[str]) -> tuple[int, str]:
        if "show" not in command:
            self.told.append(list(command))
        return 0, self.shown if "show" in command else ""

    def has_program(self, name: str) -> bool:
        return True


def test_one_that_has_the_handle_of_these_words_is_ours_and_another_is_somebodys() -> None:
    ours = WithTc(shown=f"qdisc pfifo {HANDLE} root refcnt 2 limit 77p\n")
    (change,) = qdiscs({"eth0": WORDS}, ours)
    assert change.value == f"{HANDLE} {WORDS}"
    theirs = WithTc(shown="qdisc pfifo 8001: root refcnt 2 limit 77p\n")
    with pytest.raises(RtmeterError, match=r"a qdisc that somebody chose \(8001: pfifo limit 77p\)"):
        list(qdiscs({"eth0": WORDS}, theirs))


@pytest.mark.parametrize("value", [None, "0: noqueue"])
def test_the_kernels_own_choice_comes_back_as_ours_is_taken_away(value: str | None) -> None:
    root = WithTc()
    Qdisc("eth0").write(root, value)
    Qdisc("left/eth0").write(root, "7274: tbf rate 1Mbit")
    commands = [" ".join(command) for command in root.told]
    assert commands == [
        "tc qdisc del dev eth0 root",
        "tc -n left qdisc replace dev eth0 root handle 7274: tbf rate 1Mbit",
    ]
