"""The same proof through the command line: what ``rtmeter`` prints as JSON, and its exit codes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from null_runs import KINDS, assert_same_summary, random_run, write_script
from null_simulator import report, simulate

import definitions
from front import ended, rtmeter, running
from rtmeter.host.lock import machine_lock
from rtmeter.results import store

EXIT_CODES = {"pass": 0, "error": 1, "fail": 2, "inconclusive": 3}


def answer(folder: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Exit code and the JSON object that was printed."""
    done = rtmeter(*arguments, "--json", cwd=folder)
    assert done.code in (0, 2, 3), done.out + done.err
    return done.code, done.json


def options_of(config: dict[str, Any]) -> list[str]:
    """The config as command-line options: all of it."""
    times = {"period_ns": "period", "timeout_ns": "timeout", "loss_timeout_ns": "loss-timeout"}
    times |= {"deadline_ns": "deadline", "sleep_offset_ns": "sleep-offset"}
    words = {"samples": "samples", "overrun": "overrun", "mode": "mode", "drive": "drive"}
    words |= {"in_flight": "in-flight", "receive": "receive", "interface": "interface"}
    assert config.keys() <= {*times, *words, "measurement", "role", "warm_up", "options"}
    given = {times[key]: f"{config[key]}ns" for key in times if config.get(key) is not None}
    given |= {words[key]: str(config[key]) for key in words if config.get(key) is not None}
    given["warm-up"] = f"{config['warm_up'] * config['period_ns']}ns"
    if config.get("mode") == "one_shot":
        del given["period"]
    listed = [f"--{name}={value}" for name, value in given.items()]
    return listed + [f"--option={key}={value}" for key, value in config.get("options", {}).items()]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", KINDS)
def test_command_line(kind: str, tmp_path: Path, sized: Any) -> None:
    for seed in range(sized("runs", reduced=1, full=10)):
        rng, folder = random.Random(f"{kind} cli {seed}"), tmp_path / str(seed)
        folder.mkdir()
        config, script = random_run(kind, rng, rng.choice((50, 3000)))
        write_script(folder, script)
        asked = [config["measurement"], "--adapter=null", "--script=script.csv", *options_of(config)]
        code, measured = answer(folder, "measure", *asked, "--out=cell")
        _, shown = answer(folder, "summary", "cell")
        assert code == EXIT_CODES[measured["verdict"]["outcome"]] if measured["verdict"] else code == 0

        # All that a summary states are differences: where the grid begins does not matter.
        rows, counters = simulate(config, script, 0)
        report(config, rows)
        meta = {"mode": None, "in_flight": None, "deadline_ns": None, "timeout_ns": None, **config}
        wanted = definitions.summary(meta | {"counters": counters}, rows)
        for summary in (measured, shown):
            assert summary["valid"] is True
            assert_same_summary(summary, wanted)

        deadline = rng.choice((1, config["period_ns"] // 4, 10 * config["period_ns"]))
        code, verdict = answer(folder, "verdict", "cell", f"--deadline={deadline}ns", "--miss-ratio=0.01")
        assert code == EXIT_CODES[verdict["outcome"]]
        missed = definitions.misses(meta, rows, deadline)
        assert {name: verdict[name] for name in missed} == missed


def test_two_nulls_run_at_once_beside_a_real_measurement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No time passes on a scripted clock: nobody has to wait for them, and they wait for nobody."""
    monkeypatch.chdir(tmp_path)
    Path("nulls.yaml").write_text(
        "name: nulls\ncells: [{measurement: wakeup, adapter: 'null', samples: 50, warm_up: 0s}]\n"
    )
    cell = ["measure", "wakeup", "--adapter=null", "--samples=50"]
    with machine_lock("a real measurement"):
        with running(*cell) as one, running(*cell) as two, running("run", "nulls.yaml") as three:
            done = [ended(process) for process in (one, two, three)]
        real = rtmeter("measure", "wakeup", "--adapter=posix", "--samples=50")
    assert [each.code for each in done] == [0, 0, 0], done
    assert (real.code, "one measures here already" in real.err) == (1, True)
    assert len(store.cell_folders(tmp_path / "results")) == 3


def test_nulls_that_change_the_machine_need_it(tmp_path: Path) -> None:
    asked = ["measure", "wakeup", "--adapter=null", "--samples=50", "--out", tmp_path / "cell"]
    with machine_lock("a real measurement"):
        loaded = rtmeter(*asked, "--load", "cpu=1")
    assert (loaded.code, "one measures here already" in loaded.err) == (1, True)
