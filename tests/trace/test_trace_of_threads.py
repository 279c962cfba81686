"""What a recording of some threads knows beside the events: names of calls and timers, other clocks."""

from __future__ import annotations

import time
from pathlib import Path

from rtmeter.host.root import Root
from rtmeter.trace.of_threads import call_names_32, functions_of
from rtmeter.trace.recorder import offset_ns


def test_system_calls_of_a_32_bit_program_have_their_own_numbers_and_usual_names() -> None:
    names = call_names_32("x86_64")
    assert (names[162], names[240], names[407], names[422]) == (
        "nanosleep",
        "futex",
        "clock_nanosleep",
        "futex",
    )
    assert call_names_32("riscv64") == []


def test_functions_of_timers_are_found_by_address_and_none_where_the_kernel_hides_them(
    tmp_path: Path,
) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/kallsyms").write_text(
        "ffffffff8141e4b0 t hrtimer_wakeup\nffffffff81733b90 t timerfd_tmrproc\nffffffff81000000 T other\n"
    )
    assert functions_of(Root(tmp_path)) == {
        0xFFFFFFFF8141E4B0: "hrtimer_wakeup",
        0xFFFFFFFF81733B90: "timerfd_tmrproc",
    }
    (tmp_path / "proc/kallsyms").write_text("0000000000000000 t hrtimer_wakeup\n")
    assert functions_of(Root(tmp_path)) == {}


def test_a_clock_is_its_own_offset_from_the_monotonic_one() -> None:
    assert abs(offset_ns(time.CLOCK_MONOTONIC)) < 1_000_000_000
    assert offset_ns(time.CLOCK_REALTIME) > 10**18
