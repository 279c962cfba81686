"""A board whose power fails in the middle of a run, and on which all that rtmeter runs is killed."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import pyarrow.parquet as pq
from two_hosts import DEVICE, Hosts

import boots
from front import ended, rtmeter, running
from stored import cell_json

WAKEUP = ["measure", "wakeup", "--adapter", "posix", "--period", "1ms", "--warm-up", "0"]
LONG = [*WAKEUP, "--samples", 100_000, "--condition", f"qdisc.{DEVICE}=pfifo limit 77"]


def test_a_run_goes_on_after_a_boot_in_the_middle_of_a_cell(board: Hosts, tmp_path: Path) -> None:
    before = board.qdiscs()
    campaign, out = tmp_path / "boots.yaml", tmp_path / "results"
    campaign.write_text(boots.campaign(board.url, "1ms", f"qdisc: {{{DEVICE}: pfifo limit 77}}", 15_000))
    run = ["run", campaign, "--out", out]
    with running(*run, **board.near_end()) as process:
        board.wait_for_samples(set(), process)  # the first cell has fewer than that takes
        board.boot_anew()
        done = ended(process)
    assert done.code == 1
    cells = {name: next(out.glob(f"*/*/*/{name}")) for name in ("whole", "cut")}
    kept = (cells["whole"] / "cell.json").read_bytes()
    assert cell_json(cells["cut"])["status"] == "failed" and "died in mid-run" in done.err
    assert (board.state / "journal").exists()
    again = rtmeter(*run, "--resume", **board.near_end())
    assert again.code == 0, again.err
    assert "whole: done before" in again.err
    assert (cells["whole"] / "cell.json").read_bytes() == kept
    cell = cell_json(cells["cut"])
    assert (cell["status"], cell["valid"], pq.read_metadata(cells["cut"] / "samples.parquet").num_rows) == (
        "complete",
        True,
        15_000,
    )
    assert (board.qdiscs(), (board.state / "journal").exists()) == (before, False)


def test_what_a_boot_forgot_is_not_put_back(board: Hosts, tmp_path: Path) -> None:
    before = board.qdiscs()
    with running(*LONG, "--on", board.url, "--out", tmp_path / "cell", **board.near_end()) as process:
        board.wait_for_samples(set(), process)
        process.kill()
        process.wait()
    board.wait_until_ended()
    assert (board.state / "journal").exists() and "limit 77p" in board.qdiscs()[1]
    board.boot_anew()
    done = rtmeter("restore", "--on", board.url, **board.near_end())
    assert done.code == 0 and "before the machine was booted anew" in done.out
    assert (board.qdiscs(), (board.state / "journal").exists()) == (before, False)


def test_what_was_killed_there_is_put_back_by_the_next_cell(board: Hosts, tmp_path: Path) -> None:
    before = board.qdiscs()
    with running(*LONG, "--on", board.url, "--out", tmp_path / "cell", **board.near_end()) as process:
        board.wait_for_samples(set(), process)
        for pid in board.sessions():  # probe, helper and shells
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        done = ended(process)
    assert done.code == 1 and "died in mid-run" in done.err
    next_one = rtmeter(
        *WAKEUP, "--samples", 20, "--on", board.url, "--out", tmp_path / "next", **board.near_end()
    )
    assert next_one.code == 0, next_one.err
    assert (board.qdiscs(), (board.state / "journal").exists()) == (before, False)
