"""A day at 1 kHz of a cycle, the run whose verdict takes most memory: two quantities of each release."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
from rates import Sized

from memory import PEAK_KIB
from rtmeter.model import ABSENT, SERVED, SKIPPED
from rtmeter.statistics.judged import judged_run

DAY_AT_1_KHZ = 86_400_000
ALLOWED_KIB = 2 * 1024 * 1024
META = {"measurement": "cycle", "mode": None, "period_ns": 1_000_000, "timeout_ns": None, "warm_up": 0}

JUDGE = f"""
import json, sys
import numpy as np
from rtmeter.model import ABSENT, SERVED, SKIPPED, Requirement
from rtmeter.judge.verdict import judge
{PEAK_KIB}
n, chunk = int(sys.argv[1]), 1 << 20
between = "request_sent_ns", "request_received_ns", "response_sent_ns"
names = "start_ns", *between, "response_received_ns"

def chunks():
    generator = np.random.default_rng(1)
    for first in range(0, n, chunk):
        k = np.arange(first, min(first + chunk, n))
        release = 10**9 + k * 10**6
        start = release + np.rint(generator.exponential(30_000, len(k))).astype(np.int64)
        skipped = generator.random(len(k)) < 1e-4
        stamps = (np.where(skipped, ABSENT, start + 5_000 * at) for at in range(len(names)))
        steps = dict(zip(names, stamps, strict=True))
        free = np.where(skipped, release + 10**6, ABSENT)
        status = np.where(skipped, SKIPPED, SERVED)
        yield {{"k": k, "release_ns": release, **steps, "free_ns": free, "status": status}}

found = judge({META!r}, chunks, Requirement(1_000_000, 1e-3))
print(json.dumps([found.outcome, found.n, found.skipped, found.support.growth, peak_kib()]))
"""


def test_a_day_of_a_cycle_is_judged_in_bounded_memory(sized: Sized) -> None:
    n = sized("releases", reduced=2_000_000, full=DAY_AT_1_KHZ)
    done = subprocess.run([sys.executable, "-c", JUDGE, str(n)], capture_output=True, text=True, check=True)
    outcome, judged, skipped, growth, peak_kib = json.loads(done.stdout)
    assert (outcome, judged, growth) == ("pass", n, "skipping")
    assert 0.5e-4 < skipped / n < 2e-4
    assert peak_kib < ALLOWED_KIB


def test_what_is_judged_takes_four_bytes_a_release_where_they_fit_and_one_for_skips() -> None:
    """Also where it came in chunks, for which more was held."""
    n = 5000
    release = np.arange(n) * 1_000_000
    status = np.where(np.arange(n) % 100 == 7, SKIPPED, SERVED)
    there = status == SERVED
    columns = {"k": np.arange(n), "release_ns": release, "start_ns": np.where(there, release + 1000, ABSENT)}
    columns |= {"response_received_ns": np.where(there, release + 9000, ABSENT), "status": status}
    columns |= {"free_ns": np.where(there, ABSENT, release + 500)}
    chunks = [{name: column[at : at + 700] for name, column in columns.items()} for at in range(0, n, 700)]
    run = judged_run(META, lambda: chunks)
    assert run.skipped is not None and run.delay_ns is not None
    for array, size in ((run.values, 4), (run.delay_ns, 8), (run.skipped, 1)):
        held = array if array.base is None else array.base
        assert (len(array), array.nbytes, held.nbytes) == (n, size * n, size * n)
    assert np.array_equal(run.values, np.where(there, 9000, 500))
    assert np.array_equal(run.delay_ns, np.where(there, 1000, 500))
