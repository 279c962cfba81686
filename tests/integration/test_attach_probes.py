"""rtmeter attach beside rtmeter's own probes, which record themselves."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attached import here, records

from front import ended, probes_of, rows_of, running
from rtmeter.model import SERVED
from rtmeter.results import store
from waiting import until

pytestmark = here

STAMPS = {"wakeup": "wake_ns", "timer": "callback_ns"}


def rows_in(cell: Path) -> dict[str, Any]:
    chunks = list(store.chunks(cell)())
    return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}


@pytest.mark.parametrize("measurement", STAMPS)
def test_every_release_of_a_probe_is_found_its_stamp_within_the_job(tmp_path: Path, measurement: str) -> None:
    """What the probe serves without a system call, for it has passed, is a release that nobody slept for."""
    own, seen = tmp_path / "own", tmp_path / "seen"
    asked = ("--adapter", "posix", "--period", "2ms", "--duration", "1h", "--warm-up", "0s", "--out", own)
    with running("measure", measurement, *asked) as front:
        [probe] = until(lambda: probes_of(front.pid), of=front)
        log = tmp_path / "own.partial" / store.CLIENT_LOG
        until(lambda: rows_of(log) > 0, of=front)
        looking = ("--pid", probe, "--thread", probe, "--duration", "1h", "--period", "2ms", "--out", seen)
        with running("attach", *looking) as attach:
            until(lambda: records(attach), of=attach)
            enough = rows_of(log) + 500  # half of which may have come before
            until(lambda: rows_of(log) > enough, of=attach)
            attach.send_signal(signal.SIGINT)
            done = ended(attach)
        front.send_signal(signal.SIGINT)
        ended(front)
    assert (done.code, store.read_cell(seen).status) == (1, "interrupted"), done.err
    attached, known = rows_in(seen), rows_in(own)
    first, last = attached["release_ns"][0], attached["release_ns"][-1]
    window = (known["release_ns"] >= first) & (known["release_ns"] <= last)
    assert set(known["release_ns"][window].tolist()) <= set(attached["release_ns"].tolist())
    stamps = dict(zip(known["release_ns"].tolist(), known[STAMPS[measurement]].tolist(), strict=True))
    served = attached["status"] == SERVED
    assert served.any()
    for name in ("release_ns", "wake_ns", "free_ns"):
        assert (np.diff(attached[name][served]) > 0).all()
    for release, wake, free in zip(
        *(attached[name][served] for name in ("release_ns", "wake_ns", "free_ns")), strict=True
    ):
        if int(release) in stamps:
            assert wake <= stamps[int(release)] <= free
