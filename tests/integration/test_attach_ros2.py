"""rtmeter attach --ros2 beside a node, of rclpy and of rclcpp, that records each of its callbacks itself."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import ros_runs
from attached import here, left_instances, left_probes
from explained_attached import assert_explained

from front import rtmeter, running
from rigs_here import URL, board_at, program, traceable
from rtmeter.errors import RtmeterError
from rtmeter.host.root import Root
from rtmeter.measure.programs.attaching import place
from rtmeter.measure.programs.looking import LOOK_S
from rtmeter.results import store
from rtmeter.results.record import CellRecord
from rtmeter.trace.rcl import NAMING, PROBES, found_among, loaded_by, what_of
from rtmeter.trace.symbols import offsets_of
from waiting import until

OWN_NAMES = {
    "timer 20 ms": "fast",
    "timer 50 ms": "slow",
    "/left/tick": "heard",
    "/left/raw": "heard_raw",
    "service /left/ask": "asked",
    "client /left/ask": "answered",
}
"""What the node calls its callbacks."""
CAME = {"/left/tick", "/left/raw", "service /left/ask", "client /left/ask"}
SOURCES = Path(__file__).parent
MS = 1_000_000
Command = list[str | Path]


@pytest.fixture(scope="module", params=["rclpy", "rclcpp"])
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    """The node's command but for the file that it writes."""
    about = ros_runs.surroundings(tmp_path_factory.mktemp("log"))
    if request.param == "rclcpp":
        command = [_compiled(tmp_path_factory.mktemp("named_node"))]
    else:
        command = [sys.executable, SOURCES / "named_node.py"]
        found = [sys.executable, "-c", "import rclpy"]
        if subprocess.run(found, env=os.environ | about, capture_output=True, check=False).returncode:
            pytest.skip("needs rclpy")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in about.items():
            patch.setenv(name, value)
        yield command


def _compiled(build: Path) -> Path:
    if not ros_runs.has_rclcpp():
        pytest.skip("needs a ROS 2 with rclcpp, sourced")
    for step in (["-S", SOURCES / "named_node", "-B", build, "-G", "Ninja"], ["--build", build]):
        done = subprocess.run(["cmake", *step], capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return build / "named_node"


@dataclass
class OfCallback:
    """A callback's cell, and when it was called, as it knows itself."""

    record: CellRecord
    rows: dict[str, np.ndarray]
    own: np.ndarray


@pytest.fixture(scope="module")
def cells(node: Command, tmp_path_factory: pytest.TempPathFactory) -> dict[str, OfCallback]:
    folder = tmp_path_factory.mktemp("ros2")
    seconds = 60 if os.environ.get("RTMETER_FULL") == "1" else 2
    out = ("--duration", f"{seconds}s", "--out", folder / "cells")
    done = rtmeter("attach", "--ros2", *out, "--", *node, folder / "own.txt")
    assert done.code == 0, done.err
    own: dict[str, list[int]] = {}
    for line in (folder / "own.txt").read_text().splitlines():
        name, stamp = line.split()
        own.setdefault(name, []).append(int(stamp))
    found = {}
    for cell in (folder / "cells").iterdir():
        record = store.read_cell(cell)
        chunks = list(store.chunks(cell)())
        rows = {key: np.concatenate([chunk[key] for chunk in chunks]) for key in chunks[0]}
        name = OWN_NAMES[record.adapter_facts["callback"]]
        found[name] = OfCallback(record, rows, np.asarray(own[name]))
    return found


@here
def test_every_callback_is_a_cell_with_the_names_of_its_node_and_its_topic_or_service(
    cells: dict[str, OfCallback],
) -> None:
    facts_of = {name: cell.record.adapter_facts for name, cell in cells.items()}
    assert {facts["node"] for facts in facts_of.values()} == {"/left/arm"}
    assert {name: (facts.get("topic"), facts.get("service")) for name, facts in facts_of.items()} == {
        "fast": (None, None),
        "slow": (None, None),
        "heard": ("/left/tick", None),
        "heard_raw": ("/left/raw", None),
        "asked": (None, "/left/ask"),
        "answered": (None, "/left/ask"),
    }
    assert {name: cell.record.id for name, cell in cells.items()} == {
        "fast": "loop-attached-left-arm-timer-20-ms",
        "slow": "loop-attached-left-arm-timer-50-ms",
        "heard": "loop-attached-left-arm-left-tick",
        "heard_raw": "loop-attached-left-arm-left-raw",
        "asked": "loop-attached-left-arm-service-left-ask",
        "answered": "loop-attached-left-arm-client-left-ask",
    }


def assert_stamped(name: str, node: Command, wakes: np.ndarray, frees: np.ndarray, own: np.ndarray) -> None:
    """Each job has the callback's own stamp. rclpy's executor does what is to be done with an answer when it
    has turned to all else that was there with it: before it takes the next."""
    if name == "answered" and node[0] == sys.executable:
        wakes, frees = wakes[:-1], wakes[1:]
    inside = own[(own >= wakes[0]) & (own <= frees[-1])]
    assert len(inside) == len(wakes) > 10
    assert ((wakes < inside) & (inside < frees)).all()


@here
@pytest.mark.parametrize("name", OWN_NAMES.values())
def test_each_call_is_a_job_with_the_callbacks_own_stamp_in_it(
    cells: dict[str, OfCallback], node: Command, name: str
) -> None:
    cell = cells[name]
    if cell.record.counters["events_lost"]:
        pytest.skip("events were lost: their jobs are unknown")
    served = cell.rows["status"] & 127 == 1
    wakes, frees = cell.rows["wake_ns"][served], cell.rows["free_ns"][served]
    assert_stamped(name, node, wakes, frees, cell.own)
    assert (cell.rows["busy_ns"][served] > 0).all()


@here
@pytest.mark.parametrize("name, period", [("fast", 20 * MS), ("slow", 50 * MS)])
def test_a_timers_releases_are_when_rcl_holds_it_to_be_due(
    cells: dict[str, OfCallback], name: str, period: int
) -> None:
    cell = cells[name]
    grid = cell.record.grid
    assert (grid["period_ns"], grid["period_from"], grid["t0_from"]) == (period, "timer", "timer")
    assert set(np.diff(cell.rows["release_ns"]).tolist()) == {period}
    assert (cell.rows["wake_ns"] >= cell.rows["release_ns"])[cell.rows["status"] & 127 == 1].all()


def is_dead(name: str) -> bool:
    """Whether who made it has ended."""
    owner = name.replace("-", "_").partition("_")[0]
    return not Path("/proc", owner).exists()


@here
def test_callbacks_of_a_target_are_cells_with_their_nodes_names(
    node: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("attach", "--ros2", "--on", URL, "--duration", "2s", "--out", tmp_path / "cells")
    if not traceable():
        pytest.skip("in a PID namespace")
    with board_at(tmp_path, monkeypatch) as board:
        program(board, "ldd", f'echo there >{tmp_path}/ldd; exec {shutil.which("ldd")} "$@"')
        done = rtmeter(*asked, "--", *node, tmp_path / "own.txt")
    assert done.code == 0, done.err
    assert (tmp_path / "ldd").exists()  # what it will load was asked there
    own = [line.split() for line in (tmp_path / "own.txt").read_text().splitlines()]
    found = {cell: store.read_cell(cell) for cell in (tmp_path / "cells").iterdir()}
    assert {record.adapter_facts["callback"] for record in found.values()} == OWN_NAMES.keys()
    for cell, record in found.items():
        assert record.adapter_facts["node"] == "/left/arm" and record.hosts == {"target": URL}
        rows = pq.read_table(cell / "samples.parquet").to_pylist()
        jobs = np.array([(row["wake_ns"], row["free_ns"]) for row in rows if row["status"] == "served"])
        called = OWN_NAMES[record.adapter_facts["callback"]]
        stamps = np.array([int(ns) for name, ns in own if name == called])
        assert_stamped(called, node, jobs[:, 0], jobs[:, 1], stamps)


@here
def test_each_callback_has_the_causes_of_its_late_releases_by_the_one_recording(
    node: Command, tmp_path: Path
) -> None:
    if not traceable():
        pytest.skip("in a PID namespace")
    asked = ("--explain", "--deadline", "1us", "--duration", "1500ms", "--out", tmp_path / "cells")
    done = rtmeter("attach", "--ros2", *asked, "--", *node, tmp_path / "own.txt")
    assert done.code == 2, done.err
    cells = [*(tmp_path / "cells").iterdir()]
    assert {store.read_cell(cell).adapter_facts["callback"] for cell in cells} == OWN_NAMES.keys()
    assert len({(cell / "trace.parquet").stat().st_ino for cell in cells}) == 1
    for cell in cells:
        assert_explained(cell)


@here
def test_nothing_of_it_is_left(cells: dict[str, OfCallback]) -> None:
    assert cells
    # Those of a front that a test beside this one killed are taken away in a moment.
    until(lambda: not any(is_dead(one.removeprefix("rtmeter-attach-")) for one in left_instances()))
    until(lambda: not any(is_dead(one.partition("rtmeter_attach_")[2]) for one in left_probes()))


@here
def test_a_node_that_is_made_after_the_warm_up_has_its_name_too(node: Command, tmp_path: Path) -> None:
    done = rtmeter("attach", "--ros2", "--warm-up", "0", "--json", "--", *node, tmp_path / "own.txt")
    assert done.code == 0, done.err
    assert {one["node"] for one in done.json["callbacks"]} == {"/left/arm"}


LATE = f"""
import runpy, sys, time
import rclpy
time.sleep({2 * LOOK_S})
sys.argv[:] = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@here
def test_a_node_that_is_made_long_after_its_library_was_loaded_is_waited_for(
    node: Command, tmp_path: Path
) -> None:
    if node[0] != sys.executable:
        pytest.skip("of rclpy")
    late = (sys.executable, "-c", LATE, *node[1:], tmp_path / "own.txt")
    done = rtmeter("attach", "--ros2", "--warm-up", "0", "--json", "--", *late)
    assert done.code == 0, done.err
    assert {one["node"] for one in done.json["callbacks"]} == {"/left/arm"}


@here
def test_a_running_node_tells_no_nodes_name_and_is_left_as_it_was(
    node: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where rtmeter is killed while it records."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # what one that is killed leaves there
    process = subprocess.Popen([*node, tmp_path / "own.txt"], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        done = rtmeter("attach", "--ros2", "--pid", process.pid, "--json")
        assert done.code == 0, done.err
        seen = json.loads(done.out)
        assert {(one["callback"], one["node"], one["period_ns"]) for one in seen["callbacks"]} == {
            ("timer 20 ms", None, 20 * MS),
            ("timer 50 ms", None, 50 * MS),
            *((name, None, None) for name in CAME),
        }
        assert seen["lacking"] == []
        asked = ("--ros2", "--pid", process.pid, "--duration", "1h", "--out", tmp_path / "cells")
        with running("attach", *asked) as front:
            until(lambda: any(str(front.pid) in one for one in left_probes()), of=front)
            front.kill()
            front.wait(60)
            until(lambda: not any(str(front.pid) in one for one in (*left_probes(), *left_instances())))
        assert process.poll() is None
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


@here
def test_a_program_that_is_no_ros_node_is_named() -> None:
    sleeper = subprocess.Popen(["sleep", "600"])
    try:
        done = rtmeter("attach", "--ros2", "--pid", sleeper.pid)
    finally:
        sleeper.kill()
        sleeper.wait(60)
    assert done.code == 1
    assert f"finds nothing of ROS 2 in process {sleeper.pid}" in done.err


def test_what_an_executable_loads_is_known_before_it_runs(tmp_path: Path) -> None:
    library, program = tmp_path / "librcl.so", tmp_path / "node"
    _make_rcl(library)
    (tmp_path / "p.c").write_text("int rcl_node_init(void);\nint main(void) { return rcl_node_init(); }\n")
    subprocess.run(["cc", "-o", program, tmp_path / "p.c", library], check=True)
    assert _probed(str(program), os.environ) == [str(library)]
    path = {"PATH": os.environ["PATH"]}
    assert loaded_by("/bin/sleep", path, Root()) == loaded_by("no-such-program", path, Root()) == []


@pytest.mark.parametrize("place", ("given", "sourced", "beside"))
def test_what_a_script_loads_is_looked_for_where_its_loader_looks(tmp_path: Path, place: str) -> None:
    """A file once, whatever it is called."""
    library, script = tmp_path / "ros" / "lib" / "librcl.so.1", tmp_path / "venv" / "bin" / "script"
    if place == "beside":
        library = tmp_path / "venv" / "lib" / "librcl.so.1"
    for one in (library, script):
        one.parent.mkdir(parents=True)
    _make_rcl(library)
    (library.parent / "librcl.so").symlink_to(library)
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    about = {
        "given": {"LD_LIBRARY_PATH": f"/nowhere:{library.parent}"},
        "sourced": {"AMENT_PREFIX_PATH": f"/nowhere:{tmp_path / 'ros'}"},
        "beside": {},
    }[place]
    assert _probed("script", {"PATH": str(script.parent)} | about) == [str(library)]


def _make_rcl(library: Path) -> None:
    source = library.parent / "l.c"
    source.write_text("int rcl_node_init(void) { return 0; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)


def _probed(program: str, environment: Mapping[str, str]) -> list[str]:
    found = found_among(loaded_by(program, environment, Root()), NAMING, Root())
    assert found is not None
    return [line.split()[1].partition(":")[0] for line in found.lines]


def test_the_end_of_what_an_executors_thread_of_rclcpps_was_given_is_told(tmp_path: Path) -> None:
    """Before the thread waits for the executor's lock."""
    source, library = tmp_path / "l.cpp", tmp_path / "librclcpp.so"
    of_it = "namespace rclcpp { struct AnyExecutable { virtual ~AnyExecutable(); }; }"
    source.write_text(of_it + "\nrclcpp::AnyExecutable::~AnyExecutable() {}\n")
    subprocess.run(["c++", "-shared", "-fPIC", "-o", library, source], check=True)
    found = found_among([str(library)], PROBES, Root())
    assert found is not None
    [line] = found.lines
    assert what_of(line.split()[0].partition("/")[2]) == "end"


def test_a_kernel_without_uprobes_is_named(tmp_path: Path) -> None:
    with pytest.raises(RtmeterError, match="has no uprobes") as error:
        place(Root(tmp_path), "/tracing", "group", ["p:{group}/x /bin/true:0"])
    assert error.value.remedy == "use a kernel with CONFIG_UPROBE_EVENTS"


def test_functions_of_a_file_are_found_where_they_begin(tmp_path: Path) -> None:
    source, library = tmp_path / "two.c", tmp_path / "two.so"
    source.write_text("int one(void) { return 1; }\nint two(void) { return 2; }\nextern int three(void);\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    lines = subprocess.run(["nm", "-D", library], capture_output=True, text=True, check=True).stdout
    at = {
        name: int(address, 16)
        for address, _, name in (line.split()[-3:] for line in lines.splitlines() if " T " in line)
    }
    assert offsets_of(library.read_bytes(), ("one", "three")) == {
        "one": at["one"]
    }  # here code lies as in the file
    library.write_bytes(library.read_bytes()[:700])
    assert offsets_of(library.read_bytes(), ("one",)) == {}
    assert offsets_of(source.read_bytes(), ("one",)) == {}
