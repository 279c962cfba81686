"""A run goes on in one process at a time, whichever machines it is on."""

from __future__ import annotations

from pathlib import Path

import pytest

from rigs_here import file_of
from rtmeter import cli
from rtmeter.campaign.file import read_campaign
from rtmeter.campaign.rigs import read_rigs
from rtmeter.errors import RtmeterError
from rtmeter.host.ssh import PROGRAM
from rtmeter.measure.probe.supervise import Stop
from rtmeter.measure.rigs import Stops, measure_on_rigs
from rtmeter.measure.run import Run
from rtmeter.results import store

CAMPAIGN = """
name: fleet
defaults: {adapter: "null", period: 1ms, samples: 40, warm_up: "0"}
cells: [{measurement: wakeup}]
"""


class Nobody:
    """Who is told nothing, since nothing is measured."""


def test_two_never_go_on_with_one_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(PROGRAM, "/nobody/asks/a/rig")
    file, rigs = tmp_path / "fleet.yaml", file_of(tmp_path, {"a": "patience: '0'"})
    file.write_text(CAMPAIGN)
    planned = read_campaign(file, rigs=read_rigs(rigs))
    run = Run.start(tmp_path / "out", planned, 1.0)
    words = ["run", str(file), "--rigs", str(rigs), "--out", str(tmp_path / "out"), "--resume"]
    with run.going_on():
        before = (run.folder / store.RUN).read_bytes()
        assert cli.invoke(words) == 1
        said = f"run = '{run.folder}': goes on: another process measures it; see it by `rtmeter watch"
        assert said in capsys.readouterr().err
        other = Run.last(tmp_path / "out", planned, 1.0)
        for measure in (
            lambda: measure_on_rigs(other, planned.rigs, Stops(planned.rigs), lambda _: Nobody()),
            lambda: other.measure(Stop(), Nobody()),
        ):
            with pytest.raises(RtmeterError, match="goes on: another process measures it"):
                measure()
        assert (run.folder / store.RUN).read_bytes() == before
        assert store.latest_run(tmp_path / "out", "fleet") == run.folder
    assert list(run.folder.rglob("cell.json")) == []
    assert Run.resume(tmp_path / "out", planned, 1.0).folder == run.folder
    with Run.last(tmp_path / "out", planned, 1.0).going_on():
        pass
