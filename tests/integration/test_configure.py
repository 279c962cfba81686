"""What is sourced or installed half costs no more than the adapters that need it, and is looked for anew when
something else is sourced."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCED = ("AMENT_PREFIX_PATH", "CMAKE_PREFIX_PATH", "ROS_DISTRO", "PKG_CONFIG_PATH", "PYTHONPATH")
Rows = dict[str, tuple[str, str]]
FULL = os.environ.get("RTMETER_FULL") == "1"
FEW = "posix;iceoryx;zeromq;rcl;rclpy;ros2"
"""The adapters that these tests name, and others; in full all."""
ALL = len(list((ROOT / "adapters").rglob("CMakeLists.txt"))) - 2  # not of adapters/ and of the ROS 2 messages

NO_MODULE = """#!/bin/sh
case "$*" in *"import em"*) echo "ModuleNotFoundError: No module named 'em'" >&2; exit 1;; esac
exec /usr/bin/python3 "$@"
"""
WITH_MODULE = NO_MODULE.replace(
    """ echo "ModuleNotFoundError: No module named 'em'" >&2; exit 1""", " exit 0"
)
NEEDS_EM = """
find_package(Python3 REQUIRED COMPONENTS Interpreter)
execute_process(COMMAND ${Python3_EXECUTABLE} -c "import em" RESULT_VARIABLE code)
if(code)
  message(FATAL_ERROR "execute_process(${Python3_EXECUTABLE}) returned error code ${code}")
endif()
"""


def configure(build: Path, environment: Mapping[str, str], given: Sequence[str] | None = None) -> Rows:
    """Configures rtmeter in a folder, which must succeed; returns state and need of each adapter."""
    clean = {name: value for name, value in os.environ.items() if name not in SOURCED}
    if given is None:
        given = [f"-DRTMETER_ADAPTERS={'' if FULL else FEW}"]
    done = subprocess.run(
        ["cmake", "-S", ROOT, "-B", build, "-G", "Ninja", *given],
        env=clean | environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [row.split("|", 2) for row in (build / "rtmeter-adapters.txt").read_text().splitlines()]
    return {name: (state, needs) for name, state, needs in rows}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Rows]:
    """A build folder that was configured with nothing sourced, and what was found."""
    build = tmp_path_factory.mktemp("build")
    return build, configure(build, {})


def folder_of_iceoryx(build: Path) -> str:
    """Where the last configure found iceoryx_posh."""
    [entry] = re.findall(r"^iceoryx_posh_DIR:PATH=(.*)$", (build / "CMakeCache.txt").read_text(), re.M)
    return str(entry)


def plant_package(prefix: Path, name: str, config: str) -> None:
    folder = prefix / "share" / name / "cmake"
    folder.mkdir(parents=True)
    (folder / f"{name}Config.cmake").write_text(config)


def plant_python(folder: Path, script: str) -> str:
    """A python3 of its own, first in the PATH that is returned."""
    folder.mkdir()
    (folder / "python3").write_text(script)
    (folder / "python3").chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


@pytest.mark.timeout(1200)
def test_a_package_that_ends_cmake_costs_its_adapter_alone(
    tmp_path: Path, found: tuple[Path, Rows], sized: Callable[..., int]
) -> None:
    """And once it is out of the way, the same build folder finds what is there."""
    build, without = found
    assert len(without) == sized("adapters", reduced=FEW.count(";") + 1, full=ALL)
    plant_package(tmp_path / "planted", "iceoryx_posh", 'message(FATAL_ERROR "the hoofs\\nare missing")')
    rows = configure(build, {"CMAKE_PREFIX_PATH": str(tmp_path / "planted")})
    state, needs = rows.pop("iceoryx")
    assert state == "not built"
    assert "the hoofs are missing" in needs
    assert str(build / "try" / "iceoryx.log") in needs
    assert rows == {name: row for name, row in without.items() if name != "iceoryx"}
    assert configure(build, {}) == without


@pytest.mark.timeout(1200)
def test_what_is_found_follows_what_is_sourced(tmp_path: Path, found: tuple[Path, Rows]) -> None:
    """CMake would keep to the package that it found first, in the same build folder."""
    build, without = found
    at_first = folder_of_iceoryx(build)
    planted = tmp_path / "planted"
    plant_package(planted, "iceoryx_posh", "add_library(iceoryx_posh::iceoryx_posh INTERFACE IMPORTED)")
    folder = planted / "share" / "iceoryx_posh" / "cmake"
    version = "set(PACKAGE_VERSION 2.9)\nset(PACKAGE_VERSION_COMPATIBLE TRUE)"
    (folder / "iceoryx_poshConfigVersion.cmake").write_text(version)
    assert configure(build, {"CMAKE_PREFIX_PATH": str(planted)})["iceoryx"] == ("built", "")
    assert folder_of_iceoryx(build) == str(folder)
    assert configure(build, {}) == without
    assert folder_of_iceoryx(build) == at_first


@pytest.mark.timeout(1200)
def test_a_python_that_lacks_what_ros_needs_costs_the_ros_2_adapters_alone(
    tmp_path: Path, found: tuple[Path, Rows]
) -> None:
    """Nor does it stay in use when PATH is mended, or what was sourced is not sourced any more."""
    build, without = found
    plant_package(tmp_path / "ros", "rcl", NEEDS_EM)
    sourced = {"AMENT_PREFIX_PATH": str(tmp_path / "ros"), "CMAKE_PREFIX_PATH": str(tmp_path / "ros")}
    sourced |= {"ROS_DISTRO": "planted"}
    broken = plant_python(tmp_path / "broken", NO_MODULE)
    mended = plant_python(tmp_path / "mended", WITH_MODULE)

    rows = configure(build, sourced | {"PATH": broken})
    for adapter in ("rcl", "rclpy", "ros2"):
        assert rows[adapter][0] == "not built"
        assert "No module named 'em'" in rows[adapter][1]
    assert rows["posix"] == ("built", "")

    rows = configure(build, sourced | {"PATH": mended})
    for adapter in ("rcl", "rclpy", "ros2"):
        assert rows[adapter] == ("not built", "apt install ros-planted-rmw")
    assert configure(build, {}) == without


@pytest.mark.timeout(1200)
def test_no_package_of_another_ros_2_stands_in_for_one_that_is_sourced(
    tmp_path: Path, found: tuple[Path, Rows]
) -> None:
    """PATH may lead to it first, as that of an active virtual environment does that has PyPI's; and not every
    setup file tells of a CMAKE_PREFIX_PATH."""
    build, without = found
    for name in ("rcl", "rmw", "rosidl_default_generators"):
        plant_package(tmp_path / "another", name, f'message(FATAL_ERROR "another {name}")')
    plant_package(tmp_path / "ros", "rcl", "")
    sourced = {"AMENT_PREFIX_PATH": str(tmp_path / "ros"), "ROS_DISTRO": "planted"}
    sourced["PATH"] = f"{tmp_path / 'another' / 'bin'}:{tmp_path / 'ros' / 'bin'}:{os.environ['PATH']}"
    for more in ({}, {"CMAKE_PREFIX_PATH": str(tmp_path / "ros")}):
        rows = configure(build, sourced | more)
        for adapter in ("rcl", "rclpy", "ros2"):
            assert rows[adapter] == ("not built", "apt install ros-planted-rmw")
    assert configure(build, {}) == without


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("told", [True, False], ids=["in CMAKE_PREFIX_PATH", "by AMENT_PREFIX_PATH alone"])
def test_the_adapters_of_a_ros_2_that_is_sourced_are_built(
    tmp_path: Path, found: tuple[Path, Rows], told: bool
) -> None:
    """Also where PATH leads to another first, with packages that the one that is sourced lacks."""
    build, without = found
    for name in ("rclcpp", "rclcpp_action", "tlsf_cpp"):
        plant_package(tmp_path / "another", name, f'message(FATAL_ERROR "another {name}")')
    for name in ("rcl", "rmw", "rclcpp"):
        target = f"{name}::{name}"
        config = f"if(NOT TARGET {target})\n  add_library({target} INTERFACE IMPORTED)\nendif()\n"
        plant_package(tmp_path, name, config)
    plant_package(
        tmp_path, "rosidl_default_generators", "function(rosidl_generate_interfaces)\nendfunction()\n"
    )
    sourced = {"AMENT_PREFIX_PATH": str(tmp_path), "ROS_DISTRO": "planted"}
    sourced["PATH"] = f"{tmp_path / 'another' / 'bin'}:{os.environ['PATH']}"
    rows = configure(build, sourced | ({"CMAKE_PREFIX_PATH": str(tmp_path)} if told else {}))
    assert rows["rcl"] == rows["ros2"] == ("built", "")
    assert rows["rclpy"] == (
        "not built",
        "a shell where no ROS 2 was sourced: it measures the packages of PyPI",
    )
    assert configure(build, {}) == without


def test_what_was_asked_for_is_built_whatever_is_sourced_later(tmp_path: Path) -> None:
    """The adapter zenoh tells by what it needs whether it was: with sanitizers nothing is fetched for it. A
    probe that is built no more does not stay, to be measured with."""
    given = ["-DRTMETER_ADAPTERS=null;zenoh", "-DRTMETER_ZENOH=ON", "-DRTMETER_SANITIZE=thread"]
    asked = configure(tmp_path, {}, [*given, "-DRTMETER_PORTABLE=ON", "-DRTMETER_UNITY=OFF"])
    assert asked["zenoh"] == ("not built", "a build without sanitizers: stable Rust has none")

    adapters = tmp_path / "adapters"
    probes = {name: adapters / name / f"rtmeter-probe-{name}" for name in ("null", "zenoh", "lcm")}
    for probe in probes.values():
        probe.parent.mkdir(exist_ok=True)
        probe.touch()
    assert configure(tmp_path, {}, []) == asked
    assert configure(tmp_path, {"VIRTUAL_ENV": str(tmp_path / "venv")}, []) == asked
    cache = (tmp_path / "CMakeCache.txt").read_text()
    assert "RTMETER_PORTABLE:BOOL=ON\n" in cache
    assert "RTMETER_UNITY:BOOL=OFF\n" in cache
    assert [name for name, probe in probes.items() if probe.exists()] == ["null"]


def test_where_cargo_cannot_fetch_its_reason_is_told(tmp_path: Path) -> None:
    cargo, rustc = tmp_path / "cargo", tmp_path / "rustc"
    cause = "Could not resolve host: index.crates.io"
    cargo.write_text(f"#!/bin/sh\nprintf 'error: failed;\\n\\nCaused by:\\n  {cause}\\n' >&2; exit 101\n")
    rustc.write_text("#!/bin/sh\nprintf 'rustc 9.0.0\\nhost: here\\n'\n")
    for program in (cargo, rustc):
        program.chmod(0o755)
    given = ["-DRTMETER_ADAPTERS=template/rust", f"-DRTMETER_CARGO={cargo}", f"-DRTMETER_RUSTC={rustc}"]
    rows = configure(tmp_path / "build", {}, given)
    assert rows == {"rust-template": ("not built", f"its packages from crates.io ({cause})")}


def test_what_make_builds_is_the_same_in_an_active_venv() -> None:
    """Which leads CMake first to PyPI's packages of middleware that the system has too."""
    venv = ROOT / ".venv"
    done = subprocess.run(
        ["make", "--eval", 'told:; @echo "$${VIRTUAL_ENV-none} $$PATH"', "told"],
        cwd=ROOT,
        env=os.environ | {"VIRTUAL_ENV": str(venv), "PATH": f"{venv}/bin:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"none {os.environ['PATH'].replace(f'{venv}/bin:', '')}\n"


def test_an_adapter_that_there_is_not_is_refused(tmp_path: Path) -> None:
    command = ["cmake", "-S", ROOT, "-B", tmp_path, "-G", "Ninja", "-DRTMETER_ADAPTERS=posix;carrier_pigeons"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "there is no adapters/carrier_pigeons; choose among null" in " ".join(done.stderr.split())


def test_several_packages_are_tried_together(tmp_path: Path) -> None:
    """As those of an adapter are, each by its name; one that is not there is no error."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.22)\nproject(several LANGUAGES C CXX)\n"
        f"include({ROOT}/cmake/RtmeterTry.cmake)\n"
        'rtmeter_try(both why_not planted absent last)\nmessage(STATUS "why not: <${why_not}>")\n'
    )
    plant_package(tmp_path / "prefix", "planted", 'message(STATUS "planted is read")')
    plant_package(tmp_path / "prefix", "last", 'message(FATAL_ERROR "the last is broken")')
    done = subprocess.run(
        ["cmake", "-S", project, "-B", tmp_path / "build", "-G", "Ninja"],
        env=os.environ | {"CMAKE_PREFIX_PATH": str(tmp_path / "prefix")},
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    assert "the last is broken" in done.stdout
    assert "planted is read" in (tmp_path / "build" / "try" / "both.log").read_text()
