"""Many machines at once: what their file says, and that each fails, waits and is acquired by itself."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest

from rigs_here import file_of, program, rig, ssh
from rtmeter import cli
from rtmeter.archive.cells import rows_of
from rtmeter.campaign.file import read_campaign
from rtmeter.campaign.rigs import read_rigs
from rtmeter.cli.rigs_progress import RigsProgress, line_of, table_of
from rtmeter.errors import RtmeterError
from rtmeter.host.ssh import PROGRAM
from rtmeter.measure import rigs as measured
from rtmeter.measure.rigs import Stops, measure_on_rigs, one_machine_twice
from rtmeter.measure.run import Run
from rtmeter.model import TARGET, Cell
from rtmeter.results import store
from rtmeter.results.cells import StoredCell
from rtmeter.results.record import CellRecord
from stored import record

NOW = datetime.now(UTC)
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for namespaces of its own")

CAMPAIGN = """
name: fleet
defaults: {{adapter: "null", period: 1ms, samples: 40, warm_up: "0", script: script.csv}}
cells:
  - {{measurement: wakeup, scheduling: [other, "fifo:80"]{more}}}
"""


def campaign(folder: Path, more: str = "") -> Path:
    (folder / "script.csv").write_text("wake_delay_ns\n" + "".join(f"{1000 * k}\n" for k in range(40)))
    file = folder / "fleet.yaml"
    file.write_text(CAMPAIGN.format(more=more))
    return file


def test_every_cell_is_one_of_each_rig_with_what_that_sets(tmp_path: Path) -> None:
    rigs = file_of(
        tmp_path,
        {
            "a": "labels: {site: north}",
            "b": "set: {scheduling: 'rr:5', cpus: '1', load: idle, payload: 64B}, place: shelf-3",
        },
    )
    found = read_campaign(campaign(tmp_path), rigs=read_rigs(rigs))
    assert [cell.id for cell in found.cells] == [
        "wakeup-null-other-a",
        "wakeup-null-fifo-80-a",
        "wakeup-null-b",
    ]
    first, _, other = found.cells
    assert first.axes == {"scheduling": "other", "rig": "a"} and first.hosts == {TARGET: "ssh://a"}
    assert first.rig is not None and first.rig.labels == {"site": "north"} and first.rig.place is None
    assert "cpus" not in first.config and first.conditions == {}
    assert other.config["scheduling"] == {"policy": "rr", "priority": 5} and other.config["cpus"] == [1]
    assert other.conditions == {"load": {"idle": True}} or "load" in other.conditions
    assert other.rig is not None and other.rig.patience_ns == 120 * 10**9
    only = read_campaign(campaign(tmp_path), rigs=read_rigs(rigs), only="rig==b")
    assert [cell.id for cell in only.cells] == ["wakeup-null-b"]
    assert [cell.factors["rig"] for cell in found.cells] == ["a", "a", "b"]


@pytest.mark.parametrize(
    ("text", "field", "line"),
    [
        ("rigs: []", "rigs", 1),
        ("rigs: {}", "rigs", 1),
        ("rig: {a: {address: 'ssh://a'}}", "rigs", 1),
        ("rigs:\n  a: {adress: 'ssh://a'}", "rigs.a", 2),
        ("rigs:\n  a: {address: 'ssh://a', adres: 1}", "rigs.a", 2),
        ("rigs:\n  a:\n    address: board", "rigs.a.address", 3),
        ("rigs:\n  a:\n    address: local", "rigs.a.address", 3),
        ("rigs:\n  a:\n    address: 'ssh://a'\n    patience: 3", "rigs.a.patience", 4),
        ("rigs:\n  'a b': {address: 'ssh://a'}", "rigs", 2),
        ("rigs:\n  a: {address: 'ssh://a', labels: {'x y': z}}", "rigs.a.labels", 2),
        ("rigs:\n  a: {address: 'ssh://a', set: {priod: 1ms}}", "rigs.a.set", 2),
        ("rigs:\n  a: {address: 'ssh://a', set: {adapter: posix}}", "rigs.a.set", 2),
        ("rigs:\n  a: {address: 'ssh://a'}\n  b: {address: 'ssh://a'}", "rigs.b.address", 3),
        ("rigs:\n  a.: {address: 'ssh://a'}\n  a: {address: 'ssh://b'}", "rigs", 3),
    ],
)
def test_a_file_that_is_wrong_is_refused_at_its_line(
    tmp_path: Path, text: str, field: str, line: int
) -> None:
    file = tmp_path / "rigs.yaml"
    file.write_text(text + "\n")
    with pytest.raises(RtmeterError) as refused:
        read_rigs(file)
    assert (refused.value.field, refused.value.where) == (field, f"{file}:{line}"), refused.value
    assert refused.value.remedy


@pytest.mark.parametrize(
    ("rig_sets", "campaign_says", "field"),
    [
        ("set: {period: 0ms}", "", "rigs.a.set.period"),
        ("", ", on: 'ssh://other'", "on"),
        ("set: {traffic: {rate: 1Mbit/s, to: desk}}", "", "rigs.a.set.traffic.to"),
    ],
)
def test_what_contradicts_is_refused_with_whose_it_is(
    tmp_path: Path, rig_sets: str, campaign_says: str, field: str
) -> None:
    rigs = read_rigs(file_of(tmp_path, {"a": rig_sets}))
    with pytest.raises(RtmeterError) as refused:
        read_campaign(campaign(tmp_path, campaign_says), rigs=rigs)
    assert refused.value.field == field


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which rig() makes rigs that answer."""
    monkeypatch.setenv(PROGRAM, ssh(tmp_path))
    monkeypatch.setattr(measured, "_ASK_EVERY_S", 0.01)
    return tmp_path


def ran(lab: Path, *more: str) -> tuple[int, Path]:
    """The exit code of the campaign's run on the rigs of the file, and its folder."""
    code = cli.invoke(["run", str(lab / "fleet.yaml"), "--out", str(lab / "out"), *more])
    run = store.latest_run(lab / "out", "fleet")
    assert run is not None
    return code, run


def cells(run: Path) -> dict[str, CellRecord]:
    return {folder.name: store.read_cell(folder) for folder in store.cell_folders(run)}


@as_root
def test_a_dead_rig_fails_its_own_cells_only_and_resume_measures_these(
    lab: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    campaign(lab)
    rigs = file_of(
        lab, {"a": "labels: {site: north}, patience: '0'", "b": "patience: '0'", "c": "patience: '0'"}
    )
    one_id = "0123456789abcdef0123456789abcdef"
    rig(lab, "a", machine_id=one_id)
    rig(lab, "b", machine_id=one_id)
    code, run = ran(lab, "--rigs", str(rigs))
    said = capsys.readouterr().err
    found = cells(run)
    assert (code, len(found)) == (1, 6)
    status = {name: record.status for name, record in found.items()}
    assert {name for name, one in status.items() if one == "failed"} == {
        "wakeup-null-other-c",
        "wakeup-null-fifo-80-c",
    }
    error = found["wakeup-null-other-c"].error
    assert error is not None and "c has not answered" in error.message and error.value == "ssh://c"
    assert "the rigs a and b have one machine-id" in said and "c [2/2] wakeup-null-fifo-80-c: failed" in said
    one, other = (pq.read_table(run / f"wakeup-null-other-{name}" / store.SAMPLES) for name in "ab")
    assert one.num_rows == 40 and one.equals(other)
    labelled = found["wakeup-null-other-a"].rig
    assert labelled is not None and (labelled.name, labelled.labels) == ("a", {"site": "north"})
    about = store.read_run(run)
    assert about.rigs is not None and list(about.rigs) == ["a", "b", "c"] and about.ended is not None

    rig(lab, "c")
    inodes = {name: (run / name).stat().st_ino for name in found}
    code, again = ran(lab, "--rigs", str(rigs), "--resume")
    assert (code, again) == (0, run)
    assert {record.status for record in cells(run).values()} == {"complete"}
    changed = {name for name, inode in inodes.items() if (run / name).stat().st_ino != inode}
    assert changed == {name for name in found if name.endswith("-c")}
    assert not [one for name in "abc" for one in (lab / name / "tmp").iterdir()]  # nothing stays there
    assert not list(lab.glob("*/state/journal"))

    code, _ = ran(lab, "--resume")
    assert code == 1 and "finds a run with rigs" in capsys.readouterr().err
    rigs.write_text(rigs.read_text().replace("labels: {site: north}", "set: {cpus: '0'}"))
    code, _ = ran(lab, "--rigs", str(rigs), "--resume")
    assert code == 1 and "in which a had something else set" in capsys.readouterr().err

    row = rows_of(StoredCell(run / "wakeup-null-other-a", cells(run)["wakeup-null-other-a"]), {}, NOW).cell
    assert (row["rig"], dict(row["labels"])) == ("a", {"site": "north"})


class Heard:
    """Hears of a rig; ``on`` is done when it says what begins so, or measures."""

    def __init__(self, on: Mapping[str, Callable[[], object]]) -> None:
        self._on, self.said = on, list[str]()

    def says(self, words: str) -> None:
        self.said.append(words)
        self._do(words)

    def watch(self, index: int, cell: Cell) -> Callable[[Mapping[str, Any]], None]:
        self.said.append(f"starts {cell.id}")
        return lambda event: self._do("measures") if event["released"] else None

    def ended(self, index: int, record: CellRecord) -> None:
        self.said.append(f"{record.status} {record.id}")

    def kept(self, index: int) -> None:
        self.said.append("kept")

    def _do(self, words: str) -> None:
        for begins, action in self._on.items():
            if words.startswith(begins):
                action()


def begun(lab: Path, rigs: Path, only: str = "scheduling==other") -> Run:
    planned = read_campaign(lab / "fleet.yaml", rigs=read_rigs(rigs), only=only)
    return Run.start(lab / "out", planned, 1.0)


@as_root
def test_a_rig_is_waited_for_and_the_others_go_on(lab: Path) -> None:
    campaign(lab)
    rigs = file_of(lab, {"late": "patience: 1h", "there": ""})
    rig(lab, "there")
    run = begun(lab, rigs)
    done: list[bool] = []

    def comes() -> None:  # once the other one is done
        done.append((run.folder / "wakeup-null-other-there" / store.CELL).exists())
        if done[-1] and not (lab / "late").exists():
            rig(lab, "late")

    heard = {"late": Heard({"does not answer": comes}), "there": Heard({})}
    planned = read_rigs(rigs)
    there = measure_on_rigs(run, planned, Stops(planned), heard.__getitem__)
    assert there == ["wakeup-null-other-late", "wakeup-null-other-there"]
    assert "does not answer" in heard["late"].said and done[-1]
    assert heard["late"].said[-1] == "complete wakeup-null-other-late"


@as_root
def test_one_stop_ends_all_rigs_and_keeps_what_was_measured(lab: Path) -> None:
    campaign(lab)
    rigs = file_of(lab, dict.fromkeys("ab", "set: {samples: 1000000}") | {"gone": "patience: 1h"})
    file = lab / "fleet.yaml"
    file.write_text(file.read_text().replace('"null"', "posix").replace(", script: script.csv", ""))
    for name in "ab":
        rig(lab, name)
    run, planned = begun(lab, rigs), read_rigs(rigs)
    stops, measuring = Stops(planned), set[str]()

    def begins(name: str) -> None:
        measuring.add(name)
        if measuring == {"a", "b"} and not stops.asked:
            stops.ask()

    heard = {name: Heard({"measures": lambda name=name: begins(name)}) for name in ("a", "b")}
    heard["gone"] = Heard({})
    there = measure_on_rigs(run, planned, stops, heard.__getitem__)
    assert there == ["wakeup-posix-other-a", "wakeup-posix-other-b"]
    assert {record.status for record in cells(run.folder).values()} == {"interrupted"}
    assert all(record.summary for record in cells(run.folder).values())
    assert stops.heeded and stops.keeping and store.read_run(run.folder).ended


def test_a_rig_is_asked_before_its_first_cell_and_after_each_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one,) = read_rigs(file_of(tmp_path, {"a": ""}))
    (cell, _) = read_campaign(campaign(tmp_path), rigs=(one,)).cells
    asked, answers = list[bool](), [None, RtmeterError("is gone")]
    part = measured._Part(None, one, Stops((one,)).of["a"], Heard({}))  # type: ignore[arg-type]
    monkeypatch.setattr(part, "_silent", lambda failed: asked.append(failed) or answers[len(asked) - 1])
    whole = record("x")
    failed = whole.changed(
        status="failed",
        error={"field": None, "value": None, "message": "m", "remedy": None, "where": None},
    )
    assert [part._refused(cell, before) for before in (None, whole, whole)] == [None, None, None]
    assert asked == [False]
    gone = part._refused(cell, failed)
    assert gone is answers[1] and asked == [False, True]
    assert part._refused(cell, failed) is gone and len(asked) == 2  # given up: not asked again


def test_a_result_that_cannot_be_written_is_told_once_the_other_rigs_are_done(tmp_path: Path) -> None:
    rigs = read_rigs(file_of(tmp_path, {"a": "", "b": ""}))
    cells = read_campaign(campaign(tmp_path), rigs=rigs, only="scheduling==other").cells
    full, done = RtmeterError("cannot be written: no space left on device"), list[str]()

    def measure_cells(mine: list[int], *_: object) -> None:
        if mine == [0]:
            raise full
        done.extend(cells[one].id for one in mine)

    run: Any = SimpleNamespace(cells=cells, going_on=nullcontext, measure_cells=measure_cells)
    with pytest.raises(RtmeterError) as told:
        measure_on_rigs(run, rigs, Stops(rigs), lambda _: Heard({}))
    assert told.value is full and done == ["wakeup-null-other-b"]


LABGRID = """
echo "$*" >>{log}
case "$*" in
  "-p taken acquire") why="Place taken is already acquired by desk/other.";;
  "-p ours acquire") why="You have already acquired place ours.";;
  "-p ci acquire") why="You have already acquired place ci.lab on ci-7. To work simultaneously, …";;
  "-p stuck release") why="no coordinator";;
  *) exit 0;;
esac
echo "labgrid-client: Error: $why" >&2
exit 1
"""


@as_root
def test_places_of_labgrid_are_acquired_and_released_as_they_were_found(
    lab: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    campaign(lab)
    (lab / "bin").mkdir(mode=0o755)
    program(lab, "labgrid-client", LABGRID.format(log=(log := lab / "log")))
    monkeypatch.setenv("PATH", f"{lab}/bin:{os.environ['PATH']}")
    monkeypatch.setattr("rtmeter.host.labgrid.require_trusted", lambda *_, **__: None)  # /tmp is anybody's
    names = ("free", "taken", "ours", "stuck", "ci")
    rigs = file_of(lab, {name: f"place: {name}, patience: '0'" for name in names})
    for name in names:
        rig(lab, name)
    code, run = ran(lab, "--rigs", str(rigs), "--only", "scheduling==other")
    assert code == 1
    status = {name: cells(run)[f"wakeup-null-other-{name}"].status for name in names}
    assert [name for name in names if status[name] == "complete"] == ["free", "ours", "stuck"], status
    assert (
        "stuck: its place stuck is not released: labgrid-client: Error: no coordinator"
        in capsys.readouterr().err
    )
    for name, who in (("taken", "desk/other"), ("ci", "on ci-7")):
        error = cells(run)[f"wakeup-null-other-{name}"].error
        assert error is not None and "cannot be acquired" in error.message and who in error.message
    asked = sorted(log.read_text().splitlines())
    assert asked[:4] == ["-p ci acquire", "-p free acquire", "-p free release", "-p ours acquire"]
    assert asked[4:] == ["-p stuck acquire", "-p stuck release", "-p taken acquire"]
    log.unlink()
    only = "scheduling==other and rig!=taken and rig!=ci"
    code, _ = ran(lab, "--rigs", str(rigs), "--resume", "--only", only)
    assert code == 0 and not log.exists()  # nothing is to be measured, so nothing is acquired


def machine(machine_id: str | None, boot_id: str) -> CellRecord:
    return record("x").changed(machine={"machine_id": machine_id, "boot_id": boot_id})


def test_rigs_of_one_id_are_told_from_one_machine_with_two_names() -> None:
    assert one_machine_twice({"a": machine("1", "x"), "b": machine("2", "y"), "c": machine(None, "z")}) == []
    (clones,) = one_machine_twice({"a": machine("1", "x"), "b": machine("1", "y")})
    assert "one machine-id" in clones and "systemd-machine-id-setup" in clones
    (twice,) = one_machine_twice({"a": machine("1", "x"), "b": machine("1", "x")})
    assert "are one machine" in twice


def test_all_rigs_stand_in_one_table(tmp_path: Path) -> None:
    from rich.console import Console

    planned = read_campaign(campaign(tmp_path), rigs=read_rigs(file_of(tmp_path, dict.fromkeys("abc", ""))))
    shown, said = list[str](), list[str]()
    progress = RigsProgress(planned.cells, lambda rows: shown.append(line_of(rows)), said.append, 0.0)
    a, b, c = (progress.watcher(name) for name in "abc")
    index = {cell.id: place for place, cell in enumerate(planned.cells)}
    hear = a.watch(index["wakeup-null-other-a"], planned.cells[0])
    hear({"released": 10, "of": 40, "max_ns": 1500, "lost": 0, "skipped": 0})
    failed = record("wakeup-null-other-b").changed(
        status="failed",
        valid=False,
        error=json.loads('{"field":"on","value":null,"message":"is gone","remedy":null,"where":null}'),
    )
    b.ended(index["wakeup-null-other-b"], failed)
    b.says("does not answer")
    b.says("does not answer")
    for place in (index["wakeup-null-other-c"], index["wakeup-null-fifo-80-c"]):
        c.kept(place)
    assert said == [
        "b [1/2] wakeup-null-other-b: failed: on: is gone",
        "b: does not answer",
        "c [1/2] wakeup-null-other-c: done before",
        "c [2/2] wakeup-null-fifo-80-c: done before",
    ]
    assert shown[-1].startswith("3 of 6 cells done, 1 of them failed; 1 of 3 rigs measure, 0:00:00 left")
    console = Console(width=100, record=True, file=(tmp_path / "screen").open("w"))
    console.print(table_of(list(progress.rows.values()), 10))
    rows = [line.split() for line in console.export_text().splitlines()]
    assert [row[0] for row in rows if row and row[0] in "abc"] == ["b", "a", "c"]  # trouble first, done last
    assert ["a", "0/2", "wakeup-null-other-a", "25%", "1.5", "0:00:00"] in rows
    console.print(table_of(list(progress.rows.values()), 1))
    assert "and 2 more" in console.export_text()
