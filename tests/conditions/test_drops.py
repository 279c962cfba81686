"""What the kernel dropped of messages while a cell was measured, and when it is said."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from front import ended, probes_of, rows_of, rtmeter, running
from rtmeter.conditions.drops import doubts, totals
from rtmeter.errors import RtmeterError
from rtmeter.model import LOST
from rtmeter.results import store
from rtmeter.results.condition_words import meanwhile
from rtmeter.samples import read_log
from waiting import until

OF_4 = """Ip: Forwarding DefaultTTL ReasmTimeout ReasmReqds ReasmOKs ReasmFails FragOKs
Ip: 1 64 3 400 90 5 7
Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors
Udp: 1000 1 12 900 11 0
UdpLite: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors
UdpLite: 0 0 0 0 99 0
"""
OF_6 = """Ip6ReasmFails                   \t2
Udp6InErrors                    \t60
Udp6RcvbufErrors                \t30
UdpLite6RcvbufErrors            \t77
"""


def test_drops_of_both_families_are_added_up_and_no_others() -> None:
    texts = {"/proc/net/snmp": OF_4, "/proc/net/snmp6": OF_6}
    assert totals(texts) == {"udp_buffer_drops": 11 + 30, "ip_reassembly_failures": 5 + 2}
    assert totals({"/proc/net/snmp6": OF_6}) == {"udp_buffer_drops": 30, "ip_reassembly_failures": 2}
    assert totals({"/proc/net/snmp": "Udp: InDatagrams\nUdp: 1\n"}) == totals({}) == {}


def conditions(drops: int, failures: int, **server: Any) -> dict[str, Any]:
    machine = {"seconds": 10, "udp_buffer_drops": drops, "ip_reassembly_failures": failures}
    return {"achieved": {"machine": machine}, **server}


def test_they_are_said_of_each_host_where_messages_were_lost() -> None:
    both = conditions(1200, 3, server=conditions(0, 7))
    assert list(doubts(both, 0)) == list(doubts(conditions(0, 0), 5)) == list(doubts({}, 5)) == []
    here, there = doubts(both, 5)
    assert here.type == there.type == "messages_dropped"
    assert here.message == (
        "while 5 messages were lost, the kernel at the client dropped 1,200 datagrams whose receive buffer "
        "was full (RcvbufErrors) and 3 packets whose fragments did not all come (ReasmFails)"
    )
    assert there.message == (
        "while 5 messages were lost, the kernel at the server dropped 7 packets whose fragments did not all "
        "come (ReasmFails)"
    )
    assert "net.core.rmem_max" in here.hint and "ipfrag_high_thresh" in there.hint


def test_they_stand_beside_what_the_machine_did_meanwhile() -> None:
    assert meanwhile(conditions(1200, 0)) == ["1,200 datagrams dropped, the receive buffer full"]
    assert meanwhile(conditions(0, 3)) == ["3 packets dropped, fragments missing"]


def dropped_so_far() -> int:
    texts = {
        name: Path(name).read_text() for name in ("/proc/net/snmp", "/proc/net/snmp6") if Path(name).exists()
    }
    return int(totals(texts)["udp_buffer_drops"])


def has_lost(log: Path) -> bool:
    """Whether the client has given up a ping."""
    try:
        return bool((read_log(log).columns["status"] == LOST).any())
    except RtmeterError:  # it is about to be written, or its cell has ended
        return False


@pytest.mark.skipif(not Path("/proc/net/snmp").exists(), reason="needs /proc/net/snmp")
def test_datagrams_for_a_server_that_stands_still_are_told(tmp_path: Path) -> None:
    """Its receive buffer fills up; what comes then is dropped, and counted by the kernel. Others' datagrams
    may be dropped here, too: it stands still until a ping of its own is lost."""
    asked = "roundtrip --adapter posix --option transport=udp --payload 32KiB --period 1ms --in-flight open"
    more = ("--duration", "1h", "--warm-up", "0s", "--out", tmp_path / "cell")
    with running("measure", *asked.split(), *more) as front:
        log = tmp_path / "cell.partial" / store.CLIENT_LOG
        until(lambda: rows_of(log) > 0, of=front)  # the two have met
        [server] = probes_of(front.pid, "server")
        before = dropped_so_far()
        os.kill(server, signal.SIGSTOP)
        try:
            until(lambda: has_lost(log) and dropped_so_far() > before, of=front)
        finally:
            os.kill(server, signal.SIGCONT)
        front.send_signal(signal.SIGINT)
        done = ended(front)
    record = store.read_cell(tmp_path / "cell")
    machine = record.conditions["achieved"]["machine"]
    assert machine is not None and machine["udp_buffer_drops"] > 0, done.err
    assert record.summary is not None and record.summary.counts["lost"] > 0
    [doubt] = [doubt for doubt in record.warnings if doubt.type == "messages_dropped"]
    assert re.search(
        r"the kernel at the client dropped [\d,]+ datagrams whose receive buffer was full", doubt.message
    )
    shown = rtmeter("summary", tmp_path / "cell")
    assert "RcvbufErrors" in shown.out + shown.err
