"""What `rtmeter explain --self-test` plants on this machine, and what it makes of it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from front import ended, rtmeter, running
from rtmeter.errors import RtmeterError
from rtmeter.explain.causes import Cause, Explained, Explanation, Release, ranked
from rtmeter.explain.segments import Key
from rtmeter.explain.words import words_of_cause
from rtmeter.host.cgroups import find
from rtmeter.host.root import Root
from rtmeter.machine import Intent
from rtmeter.selftest.blamed import PERIOD_NS, Blamed, added, blame, blamed, chosen, unplanted
from rtmeter.selftest.lateness import plants
from rtmeter.trace.recorder import Recorder
from rtmeter.values import Scheduling
from waiting import until

MS = 1_000_000
HOG = Key("displaced", "rtm-hog", "above")
INTENT = Intent(scheduling=Scheduling("fifo", 80))
SLOW = {"throttled"}


@pytest.fixture
def traceable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if os.geteuid() != 0 or "tracefs" not in Path("/proc/filesystems").read_text().split():
        pytest.skip("needs root and tracefs")
    if str(Path("/proc/self/ns/pid").readlink()) != "pid:[4026531836]":
        pytest.skip("in a PID namespace")
    monkeypatch.setenv("RTMETER_STATE_DIR", str(tmp_path / "state"))
    yield


def test_each_plant_is_named(traceable: None, sized: Callable[..., int]) -> None:
    times = sized("of each plant", reduced=2, full=200)
    said: list[tuple[str, int, int]] = []
    names = [plant.name for plant in plants(80) if plant.name not in SLOW or times > 2]
    found = {one.name: one for one in blame(INTENT, times, names, lambda *words: said.append(words))}
    nothing = found.pop("nothing")
    assert list(found) == names and nothing.first <= 0.01 * times * len(names), nothing
    cannot = {"moved"} if len(os.sched_getaffinity(0)) < 2 else set()
    cannot |= {"quota"} if find("cpu", Root()) is None else set()
    tried = times * len(set(names) - cannot)
    assert [words[1:] for words in said] == [(n, times * len(names)) for n in range(tried)]
    surely = set(names) - cannot - {"syscall", "throttled"}  # which not every kernel lets happen
    assert all(found[name].planted == times for name in surely), found
    assert _named_first([(found[name].planted, found[name].hit) for name in surely]), found
    assert _named_first([(one.hit, one.first) for one in found.values() if one.hit]), found
    assert all(found[name].outcome == "not planted" for name in cannot)


def test_whose_priority_was_lent_to_the_holder_of_a_lock_is_said(
    traceable: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock with priority inheritance is the plant's; that a real kernel's events say it is shown here."""
    found: list[Explanation] = []

    def kept(made: Any, planted: Any, whole: Explanation) -> Blamed:
        found.append(whole)
        return unplanted(made, planted, whole)

    monkeypatch.setattr("rtmeter.selftest.blamed.unplanted", kept)
    lock, _ = blame(INTENT, 3, ["mutex_inheriting"])
    said = [words_of_cause(row) for row in ranked(found[0].releases)]
    assert lock.first and "waited until rtm-lender woke it; rtm-loop had lent rtm-lender its priority" in said


def _named_first(counted: Sequence[tuple[int, int]]) -> bool:
    """Whether 95 % of each plant are, and at least one: what the machine does by itself meets one at times,
    of few times, too, but no more of all together than that explains."""
    of, named = np.array(counted).T
    missed = of - named
    most = max(1.0, 0.05 * of.max())
    return bool(named.min() > 0 and missed.max() <= most and missed.sum() <= binom.isf(1e-4, of.sum(), 0.05))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_and_leaves_nothing(number: int, traceable: None, tmp_path: Path) -> None:
    journal = tmp_path / "state" / "journal"
    places = [Path(groups.mount) for groups in [find("cpu", Root())] if groups]
    with running("explain", "--self-test", "--only", "quota,mutex", "--times", "1000") as front:
        until(lambda: _named(front.pid, "rtm-holder", "rtm-nice"), of=front)
        group = f"rtmeter-self-test-{front.pid}"
        assert all(_within(place, group) for place in places)
        front.send_signal(number)
        done = ended(front)
    assert (done.code, done.err) == (1, "rtmeter: interrupted; run it again: what it had set is put back\n")
    assert not journal.exists() and not any(_within(place, group) for place in places)
    assert not list(Path("/sys/kernel/tracing/instances").glob(f"rtmeter-{front.pid}-*"))
    until(lambda: not _named(front.pid, "rtm-holder") and not _named(front.pid, "rtm-loop"))


def _named(front: int, *names: str) -> bool:
    """Whether all of these processes are the front's."""
    stats = [*_texts(Path("/proc").glob("[0-9]*/stat"))]
    here = {
        stat.split("(")[1].split(")")[0] for stat in stats if stat.rpartition(")")[2].split()[1] == str(front)
    }
    return here >= set(names)


def _texts(paths: Iterator[Path]) -> Iterator[str]:
    """Of those that are still there when they are read."""
    for path in paths:
        with suppress(OSError):
            yield path.read_text()


def test_plants_are_chosen_by_name_and_one_that_there_is_not_is_refused() -> None:
    assert [plant.name for plant in chosen((), 80) if plant.seldom] == ["interrupt", "softirq", "throttled"]
    assert [(plant.name, plant.seldom) for plant in chosen(["throttled", "above"], 80)] == [
        ("above", False),
        ("throttled", False),
    ]
    with pytest.raises(RtmeterError, match="--only = 'sun': is no plant; choose among above, equal"):
        chosen(["above", "sun"], 80)
    for option in ("--only=above", "--times=3"):
        done = rtmeter("explain", option)
        assert done.code == 1 and "goes with --self-test; leave it out" in done.err


def test_what_a_plant_needs_and_the_machine_lacks_is_said(
    traceable: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rtmeter.selftest.blamed.find", lambda *_: None)
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(every)})
    try:
        found = {one.name: one for one in blame(INTENT, 1, ["moved", "quota"])}
    finally:
        os.sched_setaffinity(0, every)
    assert {one.outcome for one in found.values()} == {"not planted", "not blamed"}
    assert found["moved"].problem == "there is no other CPU"
    assert found["quota"].problem == "this machine has no groups with a quota of the CPU"


def test_plants_of_several_recordings_are_added_up(traceable: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtmeter.selftest.blamed.TIMES_AT_ONCE", 2)
    said: list[tuple[str, int, int]] = []
    begun: list[Recorder] = []
    start = Recorder.start
    monkeypatch.setattr(Recorder, "start", lambda recorder: (begun.append(recorder), start(recorder))[1])
    above, nothing = blame(INTENT, 5, ["above"], lambda *words: said.append(words))
    assert len(begun) == 3
    assert (above.name, above.planted, nothing.planted) == ("above", 5, 0)
    assert said == [("above", n, 5) for n in range(5)]


def test_counts_of_recordings_are_sums() -> None:
    one = Blamed("above", "busy", planted=20, hit=19, first=18, others=(HOG,))
    other = Blamed("above", "busy", 5, 4, 2, (Key("outside"), HOG), problem="there is none")
    assert added(one, other) == Blamed("above", "busy", 25, 23, 20, (HOG, Key("outside")), "there is none")
    assert added(other, one).problem == "there is none"


def test_a_recording_that_was_full_is_an_error_and_no_lack_of_names(
    traceable: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rtmeter.selftest.blamed.Recorder.most_bytes", 1)
    with pytest.raises(RtmeterError, match="--times = 1: the recording had no more room"):
        blame(INTENT, 1, ["above"])


def test_page_faults_are_named_only_if_there_were_so_many() -> None:
    (fault,) = chosen(["fault"], 80)
    assert fault.faults > 1000

    def first(faults: int) -> int:
        release = Release(0, 1000 * MS, 1030 * MS, True)
        found = Explanation((Explained(release, (), (0,) * faults, Cause(Key("own"), 1.0)),), (), 0)
        return blamed(fault, [(fault, (999 * MS, 1030 * MS))], found).first

    assert (first(fault.faults), first(fault.faults - 1)) == (1, 0)


def late(release_ns: int, late_ns: int, key: Key) -> Explained:
    return Explained(Release(0, release_ns, release_ns + late_ns, True), (), (), Cause(key, 1.0))


def test_the_latest_release_of_each_time_decides() -> None:
    above = plants(80)[0]
    assert above.expected == HOG
    other = Key("outside")
    planted = [
        (above, (1000 * MS, 1020 * MS)),
        (above, (2000 * MS, 2020 * MS)),
        (above, (3000 * MS, 3020 * MS)),
    ]
    releases = (
        late(1000 * MS - PERIOD_NS, 20 * MS, HOG),
        late(1002 * MS, 18 * MS, other),
        late(2001 * MS, 12 * MS, HOG),
        late(2002 * MS, 19 * MS, other),
        late(2500 * MS, 30 * MS, other),
        late(2600 * MS, 30 * MS, HOG),
    )
    found = Explanation(releases, (), 0)
    result = blamed(above, planted, found)
    assert (result.planted, result.hit, result.first, result.others) == (3, 2, 1, (other,))
    assert result.outcome == "not named"
    assert blamed(above, planted[:1], found).outcome == "named"
    assert blamed(above, planted[2:], found).outcome == "not planted"
    elsewhere = unplanted(plants(80), planted, found)
    assert (elsewhere.hit, elsewhere.first, elsewhere.outcome) == (2, 1, "blamed")
    assert unplanted(plants(80), planted, Explanation(releases[:5], (), 0)).outcome == "not blamed"
    short = late(2500 * MS, 5 * MS, HOG)
    assert unplanted(plants(80), planted, Explanation((short,), (), 0)).hit == 0


def _within(place: Path, name: str) -> bool:
    """Whether a folder of that name is below; others' may go meanwhile."""
    return any(name in folders for _, folders, _ in os.walk(place))
