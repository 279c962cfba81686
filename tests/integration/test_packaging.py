"""What leaves the source tree works without it: the wheel, the CMake package, the colcon package."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable
from pathlib import Path
from shutil import which
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]
OURS = {"null", "posix", "template"}
FULL = os.environ.get("RTMETER_FULL") == "1"
FEW = "null;posix;template/cpp"
"""What is built into the wheel; in full all that can be."""
OUTSIDE = """
cmake_minimum_required(VERSION 3.22)
project(outside LANGUAGES C CXX)
find_package(rtmeter REQUIRED)
rtmeter_add_adapter(outside SOURCES template.cpp)
"""

# What was slept for is 20 us ago: all is in time.
OWN_LOOP = """
import time
from rtmeter.loop import Loop
with Loop("arm", "1us", warm_up=1, deadline="60s", miss_ratio=0.5) as loop:
    t0 = time.monotonic_ns()
    for k in range(100):
        loop.wake(t0 + k * 1000)
        loop.done()
"""


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """Runs a command that must succeed, without the checkout in its way; returns its output."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("RTMETER_")}
    python_path = [
        p for p in environment.get("PYTHONPATH", "").split(os.pathsep) if p
    ]  # a sourced ROS 2 has one
    environment["PYTHONPATH"] = os.pathsep.join(p for p in python_path if not Path(p).is_relative_to(ROOT))
    # What cargo built already is not built again.
    environment.setdefault("CARGO_TARGET_DIR", str(ROOT / "build" / "release" / "cargo"))
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps"]
    pip += [f"--config-settings=cmake.define.RTMETER_ADAPTERS={'' if FULL else FEW}"]
    run(*pip, f"--config-settings=build-dir={folder / 'build'}", "--wheel-dir", folder, ROOT)
    [wheel] = folder.glob("*.whl")
    return wheel


@pytest.mark.timeout(1000)
def test_the_wheel_carries_package_probes_and_licence(wheel: Path, sized: Callable[..., int]) -> None:
    names = ZipFile(wheel).namelist()
    probes = [name for name in names if re.fullmatch("rtmeter/probes/rtmeter-probe-[a-z0-9-]+", name)]
    assert len(probes) >= sized("adapters at least", reduced=len(OURS), full=len(OURS) + 1)
    assert {f"rtmeter/probes/rtmeter-probe-{name}" for name in OURS} <= set(names)
    assert {"rtmeter/cli/__init__.py", "rtmeter/report/__init__.py"} <= set(names)
    assert [name for name in names if name.endswith("licenses/LICENSE")]
    loop = ("include/rtmeter/loop.h", "include/rtmeter/loop.hpp", "lib/librtmeter.so.0", "lib/librtmeter.a")
    assert {f"rtmeter/{name}" for name in (*loop, "lib/pkgconfig/rtmeter.pc")} <= set(names)
    of_package = {
        str(path.relative_to(ROOT / "src"))
        for path in (ROOT / "src" / "rtmeter").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert of_package <= set(names), "templates, styles and scripts are inside"
    assert not [name for name in names if name.startswith(("include/", "lib/"))], "nothing for C++ is"


@pytest.mark.timeout(1000)
def test_rtmeter_of_the_wheel_measures_with_its_own_probes(wheel: Path, tmp_path: Path) -> None:
    """In a virtual environment that borrows the installed libraries, but not the checkout."""
    venv.create(tmp_path / "venv", with_pip=False)
    python = tmp_path / "venv" / "bin" / "python"
    [site] = (tmp_path / "venv").glob("lib/python*/site-packages")
    ZipFile(wheel).extractall(site)
    for probe in (site / "rtmeter" / "probes").iterdir():
        probe.chmod(0o755)  # as pip does
    libraries = sysconfig.get_path("purelib")  # a sourced ROS 2 has site-packages of its own, before these
    (site / "libraries.pth").write_text(f"import sys; sys.path.append({libraries!r})\n")

    listed = json.loads(run(python, "-m", "rtmeter", "adapters", "--json", cwd=tmp_path))
    paths = {adapter["name"]: Path(adapter["path"]) for adapter in listed["adapters"]}
    assert {name: paths[name].parent for name in OURS} == dict.fromkeys(OURS, site / "rtmeter" / "probes")
    measure = ["measure", "wakeup", "--adapter", "posix", "--samples", "20", "--warm-up", "0", "--json"]
    cell = json.loads(run(python, "-m", "rtmeter", *measure, "--out", tmp_path / "cell", cwd=tmp_path))
    assert cell["counts"]["served"] == 20
    run(python, "-c", OWN_LOOP, cwd=tmp_path)
    [own] = json.loads(run(python, "-m", "rtmeter", "summary", "results", "--json", cwd=tmp_path))["cells"]
    assert (own["id"], own["counts"]["served"]) == ("arm", 99)
    run(python, "-m", "rtmeter", "report", tmp_path / "cell", "-o", tmp_path / "report.html", cwd=tmp_path)


@pytest.mark.timeout(1000)
def test_an_adapter_elsewhere_builds_against_the_installed_core(tmp_path: Path) -> None:
    build, prefix, outside = ROOT / "build" / "release", tmp_path / "prefix", tmp_path / "outside"
    run("cmake", "--preset", "release", cwd=ROOT)
    run("cmake", "--build", "--preset", "release", cwd=ROOT)
    run("cmake", "--install", build, "--prefix", prefix)
    probes = {path.name for path in (prefix / "lib" / "rtmeter").iterdir()}
    assert probes >= {f"rtmeter-probe-{name}" for name in OURS}
    about = prefix / "share" / "rtmeter"
    licence = re.search('<license file="(.+)">', (about / "package.xml").read_text())
    assert licence and (about / licence[1]).read_text() == (ROOT / "LICENSE").read_text()
    assert not list(prefix.rglob("json.hpp")), "the core's insides are not installed"

    outside.mkdir()
    (outside / "CMakeLists.txt").write_text(OUTSIDE)
    for source in (ROOT / "adapters" / "template" / "cpp").glob("*.?pp"):
        (outside / source.name).write_text(source.read_text())
    run("cmake", "-S", outside, "-B", outside / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", outside / "build")
    described = json.loads(run(outside / "build" / "rtmeter-probe-outside", "--describe"))
    assert described["measures"]


@pytest.mark.full_only("builds with colcon, which it installs")
@pytest.mark.timeout(1000)
def test_colcon_builds_the_package(tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    run(tmp_path / "venv" / "bin" / "pip", "install", "--quiet", "colcon-common-extensions")
    workspace = tmp_path / "workspace"
    (workspace / "src").mkdir(parents=True)
    (workspace / "src" / "rtmeter").symlink_to(ROOT)
    run(tmp_path / "venv" / "bin" / "colcon", "build", cwd=workspace)
    probes = {path.name for path in (workspace / "install" / "rtmeter" / "lib" / "rtmeter").iterdir()}
    assert probes >= {f"rtmeter-probe-{name}" for name in OURS}
    rtmeter = f"PYTHONPATH={ROOT / 'src'} {sys.executable} -m rtmeter"
    sourced = f"source {workspace}/install/setup.bash"
    listed = run("bash", "-c", f"{sourced} && {rtmeter} adapters", cwd=tmp_path)
    assert "posix" in listed
    if not os.environ.get("AMENT_PREFIX_PATH"):
        return
    assert "rtmeter-probe-ros2" in probes, "a ROS 2 is sourced"
    installed = workspace / "install" / "rtmeter" / "lib" / "rtmeter" / "rtmeter-probe-ros2"
    assert json.loads(run(installed, "--describe")), "it finds its messages without the workspace"
    measure = f"RTMETER_STATE_DIR={tmp_path} {rtmeter} measure cycle --adapter ros2 --samples 20 --json"
    cell = json.loads(run("bash", "-c", f"{sourced} && {measure} --out {tmp_path}/cell", cwd=tmp_path))
    assert cell["counts"]["served"] > 0
    if which("ros2"):
        described = run("bash", "-c", f"{sourced} && ros2 run rtmeter rtmeter-probe-ros2 --describe")
        assert json.loads(described)["name"] == "ros2"
