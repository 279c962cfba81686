"""The loops in examples/: each built against the installed library as a user does it, run, and judged."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest
import ros_runs

import rtmeter
from rtmeter.errors import RtmeterError
from rtmeter.loop import Loop
from rtmeter.measure.own_loop import is_open
from rtmeter.results.record import CellRecord

ROOT = Path(__file__).parents[2]
BUILD, EXAMPLES = ROOT / "build" / "release", ROOT / "examples"
RELEASES = 60


def run(*command: str | Path, cwd: Path | None = None, **changes: str) -> str:
    done = subprocess.run(
        command, cwd=cwd, env=os.environ | changes, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where librtmeter is installed, and nothing else of rtmeter."""
    folder = tmp_path_factory.mktemp("prefix")
    for component in ("loop", "development"):
        run("cmake", "--install", BUILD, "--prefix", folder, "--component", component)
    return folder


@pytest.fixture
def library(prefix: Path) -> Iterator[Path]:
    [found] = [path.parent for path in prefix.rglob("librtmeter.so")]
    yield found


def check(folder: Path, name: str, releases: int | None = RELEASES) -> CellRecord:
    """The one cell that the example recorded: every release is accounted for, and every job is there."""
    results = rtmeter.read(folder)
    [cell] = results._cells.values()
    record = cell.record
    assert (record.id, record.status) == (name, "complete")
    assert record.valid, record.warnings
    assert record.summary is not None
    counts = record.summary.counts
    assert counts["released"] == counts["served"] + counts["skipped"] + counts["lost"]
    jobs = results.samples()["status"].to_pylist().count("served")
    assert jobs + record.counters["extra_wakes"] == releases if releases else jobs > 0
    assert record.counters["unfinished"] == 0
    assert record.verdict is not None
    assert record.verdict.quantity == "completion"
    return record


def with_cmake(example: str, program: str, prefix: Path, tmp_path: Path, **changes: str) -> Path:
    """Built by its CMakeLists.txt after find_package(rtmeter)."""
    build = tmp_path / "build"
    prefixes = os.pathsep.join([str(prefix), os.environ.get("CMAKE_PREFIX_PATH", "")]).rstrip(os.pathsep)
    environment = {"CMAKE_PREFIX_PATH": prefixes} | changes
    run("cmake", "-S", EXAMPLES / example, "-B", build, "-G", "Ninja", **environment)
    run("cmake", "--build", build)
    return build / program


@pytest.mark.parametrize("kind", ["shared", "static"])
def test_a_control_loop_in_c_by_pkg_config(kind: str, library: Path, tmp_path: Path) -> None:
    found = {"PKG_CONFIG_PATH": str(library / "pkgconfig")}
    flags = run(
        "pkg-config", "--cflags", "--libs", "rtmeter", *(["--static"] * (kind == "static")), **found
    ).split()
    if kind == "static":
        flags = [flag if flag != "-lrtmeter" else "-l:librtmeter.a" for flag in flags]
    program, source = tmp_path / "control_loop", EXAMPLES / "c" / "control_loop.c"
    run("cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", source, "-o", program, *flags)
    needed = run("ldd", program, LD_LIBRARY_PATH=str(library))
    assert ("librtmeter.so.0" in needed) == (kind == "shared")
    said = run(program, tmp_path / "results", str(RELEASES), LD_LIBRARY_PATH=str(library))
    record = check(tmp_path / "results", "c-control")
    assert record.grid["t0_from"] == "reported"
    late = int(said.split()[2])
    assert (late > 0) == (record.verdict is not None and record.verdict.misses > 0), "on_late tells of misses"


@pytest.mark.parametrize(("target", "found"), [("loop", {"PKG_CONFIG_LIBDIR": "/none"}), ("loop_static", {})])
def test_a_project_in_c_by_cmake(target: str, found: dict[str, str], prefix: Path, tmp_path: Path) -> None:
    """The shared library without libzstd's headers; the archive brings the C++ library."""
    source = EXAMPLES / "c" / "control_loop.c"
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.22)\nproject(foreign C)\nfind_package(rtmeter REQUIRED)\n"
        f'add_executable(foreign "{source}")\ntarget_link_libraries(foreign rtmeter::{target})\n'
    )
    build = tmp_path / "build"
    run("cmake", "-S", tmp_path, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", **found)
    run("cmake", "--build", build)
    run(build / "foreign", tmp_path / "results", "3")


def test_a_loop_with_a_mutex_in_cpp_by_cmake(prefix: Path, tmp_path: Path) -> None:
    run(with_cmake("cpp", "mutex_loop", prefix, tmp_path), tmp_path / "results", str(RELEASES))
    record = check(tmp_path / "results", "cpp-mutex")
    assert record.grid["t0_from"] == "core"


@pytest.mark.skipif(which("cargo") is None, reason="needs cargo")
def test_a_loop_in_rust(library: Path, tmp_path: Path) -> None:
    found = {"RTMETER_LIB_DIR": str(library), "CARGO_TARGET_DIR": str(BUILD / "cargo")}
    manifest = EXAMPLES / "rust" / "Cargo.toml"
    run(
        "cargo",
        "build",
        "--release",
        "--offline",
        "--locked",
        "--quiet",
        "--manifest-path",
        manifest,
        **found,
    )
    program = BUILD / "cargo" / "release" / "rust-loop"
    run(program, tmp_path / "results", str(RELEASES), LD_LIBRARY_PATH=str(library))
    check(tmp_path / "results", "rust-control")


@pytest.mark.skipif(which("cargo") is None, reason="needs cargo")
def test_the_crate_by_its_own_tests(library: Path) -> None:
    manifest = ROOT / "librtmeter" / "rust" / "Cargo.toml"
    found = {"RTMETER_LIB_DIR": str(library), "CARGO_TARGET_DIR": str(BUILD / "cargo")}
    tests = ["cargo", "test", "--offline", "--locked", "--quiet", "--manifest-path"]
    run(*tests, manifest, **found, LD_LIBRARY_PATH=str(library))


def test_a_task_of_asyncio(tmp_path: Path) -> None:
    run(sys.executable, EXAMPLES / "python" / "asyncio_loop.py", tmp_path / "results", str(RELEASES))
    check(tmp_path / "results", "asyncio-task")


def test_a_node_of_rclpy(tmp_path: Path) -> None:
    # PyPI's packages load each other's libraries by where the loader looks.
    folders = [Path(sys.prefix, "lib"), *Path(sys.prefix, "lib").glob("python*/site-packages/ros_*.libs")]
    about = {"ROS_LOG_DIR": str(tmp_path), "ROS_AUTOMATIC_DISCOVERY_RANGE": "OFF"}
    if "AMENT_PREFIX_PATH" not in os.environ:
        about |= {"AMENT_PREFIX_PATH": sys.prefix, "LD_LIBRARY_PATH": os.pathsep.join(map(str, folders))}
    found = [sys.executable, "-c", "import rclpy"]
    if subprocess.run(found, env=os.environ | about, capture_output=True, check=False).returncode:
        pytest.skip("needs rclpy")
    run(sys.executable, EXAMPLES / "rclpy" / "timer_node.py", tmp_path / "results", str(RELEASES), **about)
    record = check(tmp_path / "results", "rclpy-timer")
    assert "grid_inferred" in {doubt.type for doubt in record.warnings}


def test_a_component_of_orocos(prefix: Path, library: Path, tmp_path: Path) -> None:
    if subprocess.run(["pkg-config", "--exists", "orocos-rtt-gnulinux"], check=False).returncode:
        pytest.skip("needs OROCOS RTT, in PKG_CONFIG_PATH")
    program = with_cmake("orocos", "periodic_component", prefix, tmp_path)
    folder = run("pkg-config", "--variable=libdir", "orocos-rtt-gnulinux").strip()
    libraries = os.pathsep.join([str(library), folder])
    run(program, tmp_path / "results", str(RELEASES), cwd=tmp_path, LD_LIBRARY_PATH=libraries)
    check(tmp_path / "results", "orocos-component", None)


def test_a_node_of_rclcpp(prefix: Path, tmp_path: Path) -> None:
    if not ros_runs.has_rclcpp():
        pytest.skip("needs a ROS 2 with rclcpp, sourced")
    run(with_cmake("rclcpp", "timer_node", prefix, tmp_path), tmp_path / "results", str(RELEASES))
    check(tmp_path / "results", "rclcpp-timer")


def test_a_loop_that_runs_is_seen_and_its_name_taken(tmp_path: Path) -> None:
    with Loop("arm", "1ms", folder=tmp_path, warm_up="1ms", miss_ratio=0.9) as loop:
        [folder] = tmp_path.glob("arm/*.loop")
        later = folder.with_name("99991231T235959Z.loop")  # by a clock that was put back since
        later.mkdir()
        assert (is_open(folder), is_open(later)) == (True, False)
        with pytest.raises(RtmeterError, match="is open already, in this process or another"):
            Loop("arm", "1ms", folder=tmp_path)
        for _ in range(3):
            loop.wake()
            loop.done()
    assert not is_open(folder)
    assert rtmeter.read(folder).samples().num_rows >= 1
