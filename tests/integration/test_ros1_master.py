"""The rosmaster of a ROS 1 run that has none: started, found, ended with it, or told why not."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from daemons import alive
from dds_runs import settled
from probe_runs import client_and_server, probe, refusal
from ros1_runs import CYCLE, ENVIRONMENT, ROS1, master_of

from rtmeter.measure.probe.probes import find_probes
from waiting import until

pytestmark = pytest.mark.skipif("ros1" not in find_probes(), reason="the adapter ros1 is not built here")


def test_its_master_starts_and_ends_with_the_server(tmp_path: Path) -> None:
    with client_and_server(tmp_path, ROS1 | {"samples": 20}) as (client, server):
        how, pid = master_of(server.events[-1])
        assert how == "started"
        assert b"rosmaster" in Path(f"/proc/{pid}/cmdline").read_bytes()
        assert master_of(client.until("ready")) == ("ran already", pid)
        settled(client, server)
    until(lambda: not alive(pid))


def test_its_master_ends_also_if_the_run_is_killed(tmp_path: Path) -> None:
    with probe(tmp_path, CYCLE | {"samples": 1_000_000}) as one:
        _, pid = master_of(one.until("ready"))
        one.kill()
    until(lambda: not alive(pid))


def test_its_master_gets_another_port_if_its_own_was_taken_meanwhile(tmp_path: Path) -> None:
    real, ports = shutil.which("rosmaster"), tmp_path / "ports"
    program = tmp_path / "rosmaster"
    program.write_text(  # as the real one, which runs on without its port
        f'#!/bin/sh\necho "$3" >> {ports}\n'
        f'[ "$(wc -l < {ports})" = 3 ] && exec {real} "$@"\n'
        'echo "OSError: [Errno 98] Address already in use"; exec sleep 300\n'
    )
    program.chmod(0o755)
    environment = ENVIRONMENT | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    with probe(tmp_path, CYCLE | {"samples": 1_000_000, "environment": environment}) as one:
        assert master_of(one.until("ready"))[0] == "started"
    assert len(set(ports.read_text().split())) == 3


def test_a_missing_master_is_told_with_what_installs_it(tmp_path: Path) -> None:
    environment = ENVIRONMENT | {"PATH": str(tmp_path), "ROS_MASTER_URI": "http://127.0.0.1:9/"}
    error = refusal(tmp_path, CYCLE | {"environment": environment})
    assert (error["field"], error["value"]) == ("rosmaster", "http://127.0.0.1:9/")
    assert "apt install python3-rosmaster" in error["remedy"]


def test_a_master_that_does_not_start_is_told_in_its_words(tmp_path: Path) -> None:
    program = tmp_path / "rosmaster"
    program.write_text("#!/bin/sh\necho no interpreter\nexit 1\n")
    program.chmod(0o755)
    error = refusal(tmp_path, CYCLE | {"environment": ENVIRONMENT | {"PATH": str(tmp_path)}})
    assert (error["field"], error["value"]) == ("rosmaster", str(program))
    assert "no interpreter" in error["message"]
