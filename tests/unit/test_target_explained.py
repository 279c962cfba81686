"""The kernel's events of a target: recorded there, explained here, and nothing of it stays."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from rigs_here import URL, board_at, program, traceable
from rtmeter.campaign.matrix import cell_from
from rtmeter.campaign.rules import settle
from rtmeter.conditions import recorder_there
from rtmeter.conditions.recorder_there import RecorderThere
from rtmeter.conditions.spool_there import SpoolThere
from rtmeter.errors import RtmeterError
from rtmeter.host.remote_root import RemoteRoot
from rtmeter.host.remote_shell import Shell
from rtmeter.host.ssh import Ssh
from rtmeter.judge.explained import explained
from rtmeter.measure.cell import run_cell
from rtmeter.measure.probe.supervise import Stop
from rtmeter.measure.programs import attaching
from rtmeter.model import Doubt
from rtmeter.results.cells import find_cells
from rtmeter.results.record import CellRecord
from rtmeter.trace.recorder import BUFFER_KIB
from rtmeter.trace.table import FILE, open_trace

INSTANCES = Path("/sys/kernel/tracing/instances")


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a target that answers; there is no instance of its shells' afterwards."""
    if not traceable():
        pytest.skip("needs root and tracefs, and no PID namespace")
    with board_at(tmp_path, monkeypatch) as board:
        program(board, "rmdir", f'echo "$@" >>{tmp_path}/removed; exec /bin/rmdir "$@"')
        yield board
    removed = tmp_path / "removed"
    made = removed.read_text().splitlines() if removed.exists() else []
    for line in (line for line in made if not line.startswith("piece.")):
        assert "/rtmeter-" in line and not Path(line.split()[-1]).exists()


def ran(folder: Path, **more: Any) -> CellRecord:
    """A short cell there."""
    given = {"measurement": "wakeup", "adapter": "posix", "period": "2ms", "samples": 50, "warm_up": "0"}
    given |= {"deadline": "1us", "explain": True, "on": URL, "monitor": "1h"}
    cell = cell_from(settle(given | more), "cell", {})
    return run_cell(cell, folder, Stop(), lambda event: None)


def bytes_in(folder: Path) -> int:
    """Of a recording's pages; of a file that is moved meanwhile, by who writes there, once or not."""
    found: dict[int, int] = {}
    for file in folder.rglob("cpu*"):
        with suppress(FileNotFoundError):
            status = file.stat()
            found[status.st_ino] = status.st_size
    return sum(found.values())


def doubt_of(record: CellRecord, kind: str) -> Doubt:
    (found,) = [doubt for doubt in record.warnings if doubt.type == kind]
    return found


def test_a_cell_of_a_target_is_explained_here_and_every_lateness_is_whole(
    board: Path, tmp_path: Path
) -> None:
    record = ran(tmp_path / "cell")
    assert record.status == "complete" and record.valid, record.error
    assert sorted(path.name for path in (tmp_path / "cell").glob("trace*")) == [FILE]
    cpus = pq.read_table(tmp_path / "cell" / FILE).column("cpu").unique()
    assert len(cpus) == os.cpu_count()
    (stored,) = find_cells(tmp_path / "cell")
    found = explained(stored).found.releases
    assert len(found) == 50
    for each in found:
        assert sum(one.end_ns - one.start_ns for one in each.segments) == each.release.lateness_ns
    last = [each.segments[-1].key.category for each in found if each.segments]
    assert last.count("own") > 25, "the stamp is taken in the thread's own code"
    assert "explain" in str(record.conditions["effective"]) if record.conditions else False


def test_what_a_target_lacks_for_it_is_named(board: Path, tmp_path: Path) -> None:
    program(board, "id", "echo 1000")
    program(board, "cat", 'case "$*" in *filesystems*) echo nodev sysfs;; *) exec /bin/cat "$@";; esac')
    program(board, "readlink", 'case "$*" in *ns/time*) echo "time:[1]";; *) exec /bin/readlink "$@";; esac')
    for program_there, words, remedy in (
        ("id", "needs root", "log in there as root"),
        ("cat", "finds no tracefs in this kernel", "CONFIG_TRACING"),
        ("readlink", "is in a time namespace", "on the host"),
    ):
        record = ran(tmp_path / f"cell-{program_there}")
        assert record.status == "failed" and record.error is not None
        assert record.error.field == "explain" and words in record.error.message, record.error
        assert remedy in (record.error.remedy or "")
        (board / "bin" / program_there).unlink()


def test_the_events_of_a_kernel_below_an_emulator_are_refused(board: Path, tmp_path: Path) -> None:
    program(board, "cat", 'case "$*" in *kernel/arch*) echo riscv64;; *) exec /bin/cat "$@";; esac')
    error = ran(tmp_path / "cell").error
    assert error is not None and error.field == "explain"
    assert error.message.startswith(
        f"finds an emulated processor: programs are run as on {os.uname().machine}"
    )
    shell = Shell(Ssh(URL, "on"))
    with closing(shell), pytest.raises(RtmeterError, match="the emulator's, is of riscv64"):
        attaching.check(RemoteRoot(shell=shell))


_FULL = "echo \"dd: error writing 'standard output': No space left on device\" >&2; exit 1"
_NO_ROOM = "no space left on device", "free space in its /tmp, or set TMPDIR there"


@pytest.mark.parametrize(
    ("name", "of", "does", "words", "hint"),
    [
        ("dd", "*trace_pipe*", _FULL, *_NO_ROOM),
        ("dd", "*trace_pipe*", "exit 1", "dd failed", "measure again"),
        ("cat", "*000/cpu0", '/bin/cat "$@" | head -c -4096', "the last 4,096 bytes of CPU", "measure again"),
        ("wc", "*cpu*", "echo no >&2; exit 1", "its files are not there", "measure again"),
    ],
    ids=["room", "silent", "short", "gone"],
)
def test_a_trace_that_does_not_come_whole_is_none_and_keeps_its_cell(
    board: Path, tmp_path: Path, name: str, of: str, does: str, words: str, hint: str
) -> None:
    program(board, name, f'case "$*" in {of}) {does};; *) exec {shutil.which(name)} "$@";; esac')
    record = ran(tmp_path / "cell", adapter="null")
    assert record.status == "complete" and record.valid, record.error
    said = doubt_of(record, "trace_incomplete")
    assert said.message.startswith(f"the trace of {URL} cannot be had: {words}")
    assert said.hint == hint
    assert not (tmp_path / "cell" / FILE).exists()


def test_of_a_long_run_chosen_releases_keep_their_events_and_the_target_has_no_more_than_its_room(
    board: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RecorderThere, "most_bytes", 4 << 20)
    monkeypatch.setattr(recorder_there, "_SETTLE_EVERY_S", 0.05)
    sizes: list[int] = []
    original = SpoolThere.settle

    def settle(self: SpoolThere) -> bool:
        sizes.append(bytes_in(Path(self.folder)))
        return original(self)

    monkeypatch.setattr(SpoolThere, "settle", settle)
    record = ran(tmp_path / "cell", period="1ms", samples=8000, deadline="1ms")
    assert record.status == "complete" and record.valid, record.error
    kernel_bytes = (os.cpu_count() or 1) * (BUFFER_KIB << 10) * 1.01  # with the heads of its pages
    assert max(sizes[:-1]) <= 4 << 20 and sizes[-1] <= (4 << 20) + kernel_bytes, "its rest comes at the end"
    assert sorted(path.name for path in (tmp_path / "cell").glob("trace*")) == [FILE], record.warnings
    kept = open_trace(tmp_path / "cell" / FILE).kept
    assert kept and record.conditions["achieved"]["trace"]["kept"]["releases"] == len(kept)
    assert not any("broke off" in doubt.message for doubt in record.warnings)
    stamps = pq.read_table(tmp_path / "cell" / "samples.parquet").column("wake_ns").to_pylist()
    times = pq.read_table(tmp_path / "cell" / FILE).column("time_ns").to_pylist()
    assert max(kept) > 4000 and times[-1] > stamps[max(kept)], "of the end too, and not of all"
    assert len(kept) < 8000


@pytest.mark.parametrize(
    ("step", "status"), [("per_cpu", "failed"), ("for piece in", "complete")], ids=["started", "brought"]
)
def test_a_link_that_is_cut_at_its_steps_leaves_nothing(
    board: Path, tmp_path: Path, step: str, status: str
) -> None:
    command = tmp_path / "ssh"
    cut = f'case "$last" in *"{step}"*) echo "ssh: Connection closed" >&2; exit 255;; esac\n'
    command.write_text(command.read_text().replace("exec unshare", cut + "exec unshare"))
    record = ran(tmp_path / "cell", adapter="null")
    assert record.status == status
    words = str(record.error) if record.error else doubt_of(record, "trace_incomplete").message
    assert "Connection closed" in words
    assert not (tmp_path / "cell" / FILE).exists()


def test_its_own_end_ends_the_recording_and_takes_the_instance_away(
    board: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hung_up: list[bool] = []

    def stop(self: RecorderThere) -> None:
        """As if the connection had ended."""
        script, instance = self._script, Path(self._instance)
        assert script is not None and instance.is_dir()
        folder = Path(self._their_folder)
        assert folder.is_dir()
        script.end(grace_s=recorder_there._ENDS_S)
        hung_up.append(script.exit_code == 0 and not instance.exists() and not folder.exists())
        original(self)

    original = RecorderThere.stop
    monkeypatch.setattr(RecorderThere, "stop", stop)
    record = ran(tmp_path / "cell", adapter="null")
    assert hung_up == [True]
    assert record.status == "complete"
    assert doubt_of(record, "trace_incomplete").hint
