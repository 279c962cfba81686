"""The adapters that rtmeter has: what each measures, and what it needs to be built."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Known:
    """An adapter by what it measures and what must be installed."""

    middleware: str
    needs: str

    @property
    def remedy(self) -> str:
        """What to do to have it."""
        return f"install {self.needs}, then run make"


KNOWN_ADAPTERS: dict[str, Known] = {
    "posix": Known("Linux system calls", "a C++20 compiler and libzstd"),
    "null": Known("nothing: scripted delays", "a C++20 compiler and libzstd"),
    "ros1": Known("ROS 1, roscpp", "libroscpp-dev and python3-rosmaster"),
    "rcl": Known("ROS 2, rcl", "a ROS 2 and source its setup.bash, or Python 3.11 to 3.13 on x86-64"),
    "ros2": Known("ROS 2, rclcpp", "ros-<distro>-rclcpp, source its setup.bash"),
    "rclpy": Known("ROS 2, rclpy", "Python 3.11 to 3.13 on x86-64, and source no ROS 2"),
    "orocos": Known("OROCOS RTT", "OROCOS RTT 2.9 for gnulinux and name its prefix in CMAKE_PREFIX_PATH"),
    "cyclonedds": Known("Eclipse Cyclone DDS", "cyclonedds-dev and cyclonedds-tools"),
    "fastdds": Known("eProsima Fast DDS 2", "libfastrtps-dev and fastddsgen"),
    "dustdds": Known("Dust DDS", "Rust 1.87 or newer: cargo-web, or rustup"),
    "iceoryx": Known("Eclipse iceoryx", "libiceoryx-posh-dev and iceoryx"),
}


def remedy_for(name: str) -> str:
    """What to do to have the adapter."""
    if name in KNOWN_ADAPTERS:
        return KNOWN_ADAPTERS[name].remedy
    return "`rtmeter adapters` lists what was found; docs/add-a-middleware.md shows how to add one"
