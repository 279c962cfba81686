"""`rtmeter watch` beside a real run: it sees the cell that is measured, and ends with the run."""

from __future__ import annotations

import signal
from pathlib import Path

from front import ended, running
from rtmeter.results import store
from stored import run_json
from waiting import until

CAMPAIGN = """
name: watched
cells:
  - {name: a, measurement: wakeup, adapter: posix, samples: 300000, warm_up: 0s, period: 1ms, monitor: 1s}
  - {name: b, measurement: wakeup, adapter: posix, samples: 10, warm_up: 0s, period: 1ms}
"""


def test_watching_ends_with_the_run_that_is_interrupted(tmp_path: Path) -> None:
    (tmp_path / "watched.yaml").write_text(CAMPAIGN)
    results, metrics, watched = tmp_path / "results", tmp_path / "run.prom", tmp_path / "watched.prom"
    with running("run", tmp_path / "watched.yaml", "--out", results, "--metrics", metrics) as run:
        until(
            lambda: metrics.exists() and 'rtmeter_releases{cell="a",end="served"}' in metrics.read_text(),
            of=run,
        )
        with running("watch", results, "--every", "100ms", "--metrics", watched) as watch:
            until(
                lambda: watched.exists() and "rtmeter_quantity_max_seconds" in watched.read_text(), of=watch
            )
            run.send_signal(signal.SIGINT)
            ended(run)
            done = ended(watch)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert any(line.startswith("[1/2] a: ") and ", max " in line for line in lines)
    assert lines[-1].endswith(": ended")
    assert "rtmeter_running 0.0" in watched.read_text()
    assert 'rtmeter_cells_done{outcome="interrupted"} 1.0' in watched.read_text()
    [about] = results.rglob(store.RUN)
    assert run_json(about.parent)["ended"] is not None
    assert not list(results.rglob("now.json"))


def test_a_chain_is_watched_by_what_reaches_its_end(tmp_path: Path) -> None:
    graph, cell, metrics = tmp_path / "graph.yaml", tmp_path / "cell", tmp_path / "watched.prom"
    graph.write_text("stages:\n  a: {period: 5ms}\n  b: {inputs: a}\n")
    asked = ("--adapter", "posix", "--graph", graph, "--duration", "10min", "--warm-up", "0s", "--out", cell)
    with running("measure", "chain", *asked, "--keep-log") as run:
        until(lambda: (tmp_path / "cell.partial" / "stages" / "b.rtlog").exists(), of=run)
        with running("watch", cell, "--every", "100ms", "--metrics", metrics) as watch:
            wanted = 'rtmeter_quantity_max_seconds{cell="cell",quantity="reaction"}'
            until(lambda: metrics.exists() and wanted in metrics.read_text(), of=watch)
            run.send_signal(signal.SIGINT)
            ended(run)
            done = ended(watch)
    assert (done.code, done.err) == (0, "")
    assert any(line.startswith("[1/1] cell: ") and ", max " in line for line in done.out.splitlines())
    assert sorted(file.name for file in (cell / "stages").iterdir()) == ["a.rtlog", "b.rtlog"]
