"""The adapters that rtmeter has: what each measures, and what it needs to be built."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KnownAdapter:
    """An adapter by what it measures and what makes it buildable: a command, where one does."""

    middleware: str
    needs: str

    @property
    def remedy(self) -> str:
        """What to do to have it."""
        return f"{self.needs}, then make"


_TOOLS = "apt install g++ libzstd-dev"
_PYPI = "have Python 3.11 to 3.13 on x86-64"

KNOWN_ADAPTERS: dict[str, KnownAdapter] = {
    "posix": KnownAdapter("Linux system calls", _TOOLS),
    "null": KnownAdapter("nothing: scripted delays", _TOOLS),
    "ros1": KnownAdapter("ROS 1, roscpp", "apt install libroscpp-dev python3-rosmaster"),
    "rcl": KnownAdapter("ROS 2, rcl", f"source a ROS 2 (source /opt/ros/<distro>/setup.bash), or {_PYPI}"),
    "ros2": KnownAdapter(
        "ROS 2, rclcpp", "apt install ros-<distro>-rclcpp and source /opt/ros/<distro>/setup.bash"
    ),
    "rclpy": KnownAdapter("ROS 2, rclpy", f"{_PYPI} and source no ROS 2"),
    "orocos": KnownAdapter(
        "OROCOS RTT", "build OROCOS RTT 2.9 for gnulinux and name its prefix in CMAKE_PREFIX_PATH"
    ),
    "cyclonedds": KnownAdapter("Eclipse Cyclone DDS", "apt install cyclonedds-dev cyclonedds-tools"),
    "fastdds": KnownAdapter("eProsima Fast DDS 2", "apt install libfastrtps-dev fastddsgen"),
    "fastdds3": KnownAdapter("eProsima Fast DDS 3", f"{_PYPI}, or source a ROS 2 from Kilted on"),
    "dustdds": KnownAdapter("Dust DDS", "apt install cargo-web, or have Rust 1.87 or newer by rustup"),
    "iceoryx": KnownAdapter("Eclipse iceoryx", "apt install libiceoryx-posh-dev iceoryx"),
    "iceoryx2": KnownAdapter(
        "Eclipse iceoryx2",
        "have Rust 1.89 or newer and libclang-dev, cmake --preset release -DRTMETER_ICEORYX2=ON",
    ),
    "zeromq": KnownAdapter("ZeroMQ", "apt install libzmq3-dev"),
    "lcm": KnownAdapter("LCM", "apt install liblcm-dev"),
    "ecal": KnownAdapter(
        "Eclipse eCAL",
        "install eCAL 6 with its headers (https://ecal.io) and name its prefix in CMAKE_PREFIX_PATH",
    ),
    "zenoh": KnownAdapter(
        "Eclipse Zenoh", "have Rust 1.85 or newer, cmake --preset release -DRTMETER_ZENOH=ON"
    ),
}


def remedy_for(name: str) -> str:
    """What to do to have the adapter."""
    if name in KNOWN_ADAPTERS:
        return KNOWN_ADAPTERS[name].remedy
    return "`rtmeter adapters` lists what was found; docs/add-a-middleware.md shows how to add one"
