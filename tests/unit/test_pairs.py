"""Which cells of A and B are compared with each other, and which of their repeats."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from rtmeter.judge.pairs import pair_up


def repeats(load: str, *numbers: int, minute: int = 0, usable: bool = True, mode: str | None = None) -> Any:
    """Repeats of those numbers of a cell under a load, a minute apart."""
    return {
        number: SimpleNamespace(
            folder=f"{load}-r{number}",
            record=SimpleNamespace(
                measurement="wakeup",
                mode=mode,
                axes={"load": load, "repeat": number},
                started=f"2026-01-01T00:{minute + 10 * number:02}:00Z",
                usable=usable,
                why_unusable="failed",
            ),
        )
        for number in numbers
    }


def test_cells_of_other_names_are_partners_by_their_axes_whichever_repeats_are_there() -> None:
    a = {"old-idle": repeats("idle", 2, 3), "old-busy": repeats("busy", 1)}
    b = {"new-busy": repeats("busy", 1, 2), "new-idle": repeats("idle", 1, 2), "other": repeats("disk", 1)}
    pairs, only_a, only_b = pair_up(a, b)
    assert [pairing.name for pairing in pairs] == ["old-idle → new-idle", "old-busy → new-busy"]
    assert (only_a, only_b) == ([], ["other"])
    assert [(one.folder, other.folder) for one, other in pairs[0].pairs] == [("idle-r2", "idle-r2")]
    assert pairs[0].left_out == ("idle-r1 has no partner", "idle-r3 has no partner")


def test_cells_of_another_mode_are_no_partners_nor_those_that_share_their_axes() -> None:
    a = {"idle": repeats("idle", 1), "busy": repeats("busy", 1)}
    b = {
        "timer": repeats("idle", 1, mode="periodic"),
        "once": repeats("busy", 1),
        "again": repeats("busy", 1),
    }
    assert pair_up(a, b) == ([], ["idle", "busy"], ["timer", "once", "again"])


def test_a_repeat_without_data_leaves_its_pair_out() -> None:
    (pairing,), _, _ = pair_up(
        {"c": repeats("idle", 1, 2)}, {"c": repeats("idle", 1) | repeats("idle", 2, usable=False)}
    )
    assert len(pairing.pairs) == 1 and pairing.left_out == ("idle-r2 failed",)


def test_in_turn_means_that_neither_was_whole_before_the_other_began() -> None:
    def interleaved(minute_of_b: int) -> bool:
        a, b = repeats("idle", 1, 2), repeats("idle", 1, 2, minute=minute_of_b)
        (forth,), _, _ = pair_up({"c": a}, {"c": b})
        (back,), _, _ = pair_up({"c": b}, {"c": a})
        assert forth.interleaved == back.interleaved
        return forth.interleaved

    assert interleaved(5) and interleaved(10) and not interleaved(20)
    (single,), _, _ = pair_up({"c": repeats("idle", 1)}, {"c": repeats("idle", 1)})
    assert not single.interleaved
