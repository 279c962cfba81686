"""The RouDi that rtmeter starts: its chunks for payloads of 8 MiB where a run wants them, and its end."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from daemons import alive, all_have_ended, roudi_answers, roudi_memory, roudi_of, without_roudi
from dds_runs import settled
from probe_runs import LONG, MS, Config, Probe, client_and_server, counts, measure, probe, read, refusal

from rtmeter.measure.probe.probes import find_probes
from waiting import until

pytestmark = pytest.mark.skipif("iceoryx" not in find_probes(), reason="the adapter iceoryx is not built")

MOST, USUAL = (8 << 20) + 48, (4 << 20) + 48
CYCLE: Config = {"adapter": "iceoryx", "measurement": "cycle", "loss_timeout_ns": LONG, "period_ns": 20 * MS}
FEW: Config = CYCLE | {"samples": 5, "warm_up": 1}
ENDLESS: Config = CYCLE | {"samples": 1_000_000}


@pytest.fixture(autouse=True)
def no_roudi() -> Iterator[None]:
    with without_roudi():
        yield


def ended(one: Probe) -> None:
    """Told to end, it ends soundly."""
    one.process.send_signal(signal.SIGTERM)
    assert one.end() == 4


def largest_chunk(folder: Path, payload_bytes: int) -> tuple[int, int]:
    """Of a run that starts its RouDi: the chunk that it borrowed, and RouDi's memory."""
    folder.mkdir()
    with probe(folder, ENDLESS | {"payload_bytes": payload_bytes}) as one:
        ready = one.until("ready")
        assert roudi_of(ready)[0] == "started"
        memory = roudi_memory().stat().st_size
        ended(one)
    until(lambda: not roudi_answers())
    all_have_ended()
    return int(ready["adapter"]["chunk_bytes"]), memory


def test_the_largest_payload_is_served_and_one_byte_more_refused(tmp_path: Path) -> None:
    (tmp_path / "most").mkdir()
    _, columns = measure(tmp_path / "most", FEW | {"payload_bytes": MOST})
    assert counts(columns)["served"] == counts(columns)["released"] == 5
    (tmp_path / "more").mkdir()
    error = refusal(tmp_path / "more", FEW | {"payload_bytes": MOST + 1})
    assert (error["field"], error["value"]) == ("payload_bytes", str(MOST + 1))
    assert error["message"].endswith("the largest carries 8 MiB and 48 bytes")
    assert "start iox-roudi with larger chunks" in error["remedy"]


def test_only_a_run_that_wants_them_costs_larger_chunks(tmp_path: Path) -> None:
    """And it has as many of them as others have of theirs."""
    usual, memory = largest_chunk(tmp_path / "usual", USUAL)
    large, more = largest_chunk(tmp_path / "large", USUAL + 1)
    assert large - usual == 4 << 20
    assert more - memory == 16 * (large - usual)


@pytest.mark.parametrize("payload_bytes", [500, 4 << 20])
def test_others_share_a_roudi_with_larger_chunks(tmp_path: Path, payload_bytes: int) -> None:
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        folder.mkdir()
    with probe(folders[0], ENDLESS | {"payload_bytes": 8 << 20}) as first:
        _, roudi = roudi_of(first.until("ready"))
        asked = {"adapter": "iceoryx", "payload_bytes": payload_bytes, "period_ns": 20 * MS, "samples": 10}
        with client_and_server(folders[1], asked | {"warm_up": 2}) as (client, server):
            assert settled(client, server)["lost"] == 0
        ended(first)
    assert roudi_of(read(client.log)[0].meta) == ("ran already", roudi)
    for one in (client, server, first):
        assert read(one.log)[0].meta["counters"]["refused_calls"] == 0


def test_a_run_that_keeps_smaller_chunks_is_told(tmp_path: Path) -> None:
    (tmp_path / "large").mkdir()
    (tmp_path / "more").mkdir()
    with probe(tmp_path, ENDLESS) as other:
        _, roudi = roudi_of(other.until("ready"))
        error = refusal(tmp_path / "large", FEW | {"payload_bytes": 8 << 20})
        beyond = refusal(tmp_path / "more", FEW | {"payload_bytes": MOST + 1})
        assert alive(roudi)
        ended(other)
    assert (error["field"], error["value"]) == ("payload_bytes", str(8 << 20))
    assert "another run of rtmeter uses: the largest carries 4 MiB" in error["message"]
    assert "when that run has ended" in error["remedy"]
    assert beyond["message"].endswith("for it: the largest carries 8 MiB and 48 bytes")


def test_a_roudi_with_smaller_chunks_that_is_about_to_end_is_not_kept(tmp_path: Path) -> None:
    """As in a sweep: the run before has ended, and who is to end its RouDi has not come to it."""
    (tmp_path / "large").mkdir()
    with probe(tmp_path, ENDLESS) as before:
        _, roudi = roudi_of(before.until("ready"))
        status = Path(f"/proc/{roudi}/status").read_text()
        keeper = int(re.search(r"^PPid:\t(\d+)$", status, re.MULTILINE)[1])  # type: ignore[index]
        os.kill(keeper, signal.SIGSTOP)
        try:
            stopped = Path(f"/proc/{keeper}/status")  # until then it may still get the lock that it waits for
            until(lambda: "State:\tT" in stopped.read_text())
            ended(before)
            with probe(tmp_path / "large", FEW | {"payload_bytes": 8 << 20}) as one:
                waits_in = Path(f"/proc/{one.process.pid}/wchan")
                until(lambda: "nanosleep" in waits_in.read_text(), of=one.process)  # it saw that RouDi
                os.kill(keeper, signal.SIGCONT)
                assert one.end() == 0, one.events
        finally:
            with suppress(ProcessLookupError):  # it has ended
                os.kill(keeper, signal.SIGCONT)
    reader, columns = read(one.log)
    how, its = roudi_of(reader.meta)
    assert how == "started" and its != roudi
    assert counts(columns)["served"] == 5


def test_its_roudi_ends_where_close_range_is_not_there(tmp_path: Path) -> None:
    """Linux before 5.9, or a container's filter: what the keeper inherits is closed nonetheless."""
    without = ("-e", "trace=close_range", "-e", "inject=close_range:error=ENOSYS")
    strace = ["strace", "-f", "-qq", "-o", os.devnull, *without]
    with probe(tmp_path, FEW | {"inside": strace}) as one:
        assert one.until("end")["event"] == "end"
        until(lambda: not roudi_answers())
