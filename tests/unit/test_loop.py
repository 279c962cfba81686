"""Python's Loop: what it asks of librtmeter, of which a library in its place takes note."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from rtmeter import loop as loops
from rtmeter.errors import RtmeterError
from rtmeter.loop import Loop
from rtmeter.loop.library import DUE_UNKNOWN

S = 10**9


class Noting:
    """The functions of librtmeter; ``refuses`` is why the next of them that may refuse does."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.options: dict[str, Any] = {}
        self.refuses = b""

    def rtm_loop_open(self, name: bytes, period_ns: int, options: Any, error: Any, size: int) -> int | None:
        given = options._obj
        self.options = {field: getattr(given, field) for field, *_ in given._fields_}
        assert given.size == ctypes.sizeof(given)
        self.calls.append((name, period_ns))
        error.value = self.refuses
        return None if self.refuses else 7

    def rtm_loop_sleep(self, handle: int) -> int:
        self.calls.append(("sleep", handle))
        return len(self.calls)

    def rtm_loop_wake(self, handle: int, due_ns: int) -> None:
        self.calls.append(("wake", handle, due_ns))

    def rtm_loop_done(self, handle: int) -> None:
        self.calls.append(("done", handle))

    def rtm_loop_close(self, handle: int, error: Any, size: int) -> int:
        self.calls.append(("close", handle))
        error.value = self.refuses
        return -1 if self.refuses else 0


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Noting:
    noting = Noting()
    monkeypatch.setattr(loops, "library", lambda: noting)
    return noting


def test_what_is_asked_for_is_what_the_library_is_told(library: Noting) -> None:
    more = {"miss_ratio": 0.25, "warm_up": "2s", "whole": "1h", "late_bytes": 5}
    Loop("arm", "1ms", folder="here", deadline=800_000, **more).close()
    assert library.calls == [(b"arm", 1_000_000), ("close", 7)]
    told = {name: library.options[name] for name in ("folder", "deadline_ns", "miss_ratio", "flags")}
    assert told == {"folder": b"here", "deadline_ns": 800_000, "miss_ratio": 0.25, "flags": 0}
    kept = [library.options[name] for name in ("warm_up_ns", "whole_ns", "late_bytes")]
    assert kept == [2 * S, 3600 * S, 5]


def test_what_is_not_asked_for_is_the_librarys_own_choice(library: Noting) -> None:
    Loop("arm", 1000)
    assert (library.options["deadline_ns"], library.options["miss_ratio"]) == (0, 0.0)
    assert [library.options[name] for name in ("warm_up_ns", "whole_ns", "late_bytes")] == [
        S,
        4 * 3600 * S,
        256 << 20,
    ]
    assert not library.options["on_late"]


@pytest.mark.parametrize(("flag", "number"), [("catch_up", 1), ("trace_marker", 2), ("break_trace", 4)])
def test_flags_are_those_of_the_header(library: Noting, flag: str, number: int) -> None:
    Loop("arm", "1ms", **{flag: True})
    assert library.options["flags"] == number


def test_a_release_that_is_iterated_over_is_done_when_the_next_is_asked_for(library: Noting) -> None:
    with Loop("arm", "1ms") as loop:
        releases = iter(loop)
        assert [next(releases), next(releases)] == [2, 4]
    assert library.calls[1:] == [("sleep", 7), ("done", 7), ("sleep", 7), ("close", 7)]
    assert list(loop) == [], "it is closed"


@pytest.mark.parametrize("leave", ["break", "raise"])
def test_work_has_ended_where_the_iteration_is_left(library: Noting, leave: str) -> None:
    """And not where the loop is closed, which may be much later."""
    with Loop("arm", "1ms") as loop:
        try:
            for _ in loop:
                if leave == "break":
                    break
                raise ValueError
        except ValueError:
            pass
        library.calls.append("later")
    assert library.calls[1:] == [("sleep", 7), ("done", 7), "later", ("close", 7)]


def test_an_iteration_that_outlives_its_loop_stamps_nothing(library: Noting) -> None:
    with Loop("arm", "1ms") as loop:
        releases = iter(loop)
        next(releases)
    del releases
    assert library.calls[1:] == [("sleep", 7), ("close", 7), ("done", None)], "without a loop: nothing"


def test_a_wake_up_without_a_release_says_so(library: Noting) -> None:
    with Loop("arm", "1ms") as loop:
        loop.wake(5)
        loop.wake()
        loop.done()
    assert library.calls[1:-1] == [("wake", 7, 5), ("wake", 7, DUE_UNKNOWN), ("done", 7)]


def test_who_is_told_of_a_late_release_hears_which_when_and_how_late(library: Noting) -> None:
    late: list[tuple[int, int, int]] = []
    Loop("arm", "1ms", on_late=lambda *one: late.append(one))
    library.options["on_late"](None, 3, 3000, 3900)
    assert late == [(3, 3000, 3900)]


def test_what_the_library_refuses_is_an_error_once(library: Noting) -> None:
    loop = Loop("arm", "1ms")
    library.refuses = b"no room"
    with pytest.raises(RtmeterError, match="no room"):
        loop.close()
    loop.close()
    with pytest.raises(RtmeterError, match="no room") as refused:
        Loop("arm", "1ms")
    assert refused.value.value == "arm"


@pytest.mark.parametrize("field", ["period", "deadline", "warm_up", "whole"])
@pytest.mark.parametrize("nothing", ["0ms", 0])
def test_no_time_is_none_of_nothing(library: Noting, field: str, nothing: str | int) -> None:
    """The library takes 0 for what was not given."""
    with pytest.raises(RtmeterError, match="must be longer than zero") as refused:
        Loop(**({"name": "arm", "period": "1ms"} | {field: nothing}))
    assert refused.value.field == field and library.calls == []


@pytest.mark.parametrize("field", ["name", "folder"])
def test_a_text_that_the_library_would_cut_is_refused(library: Noting, field: str) -> None:
    given: dict[str, Any] = {"name": "arm", "period": "1ms"} | {field: "a\0b"}
    with pytest.raises(RtmeterError, match="has a NUL byte in it") as refused:
        Loop(**given)
    assert refused.value.field == field and library.calls == []


def test_a_number_of_more_than_64_bits_is_none_of_its_lowest(library: Noting) -> None:
    Loop("arm", 2**64 + 1000, late_bytes=2**64 + 1, deadline=-(2**64) + 1000)
    assert library.calls == [(b"arm", 2**63 - 1)]
    assert (library.options["late_bytes"], library.options["deadline_ns"]) == (2**63 - 1, -(2**63))
