"""The adapters that rtmeter has or will have: what each measures, and what it needs to be built."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Known:
    """An adapter by what it measures and what must be installed; ``planned``: no version has it yet."""

    middleware: str
    needs: str
    planned: bool = True

    @property
    def remedy(self) -> str:
        """What to do to have it."""
        if self.planned:
            return f"this version has no such adapter yet; it will need {self.needs}"
        return f"install {self.needs}, then run make"


KNOWN_ADAPTERS: dict[str, Known] = {
    "posix": Known("Linux system calls", "a C++20 compiler and libzstd", planned=False),
    "null": Known("nothing: scripted delays", "a C++20 compiler and libzstd", planned=False),
    "ros1": Known("ROS 1, roscpp", "libroscpp-dev and python3-rosmaster", planned=False),
    "rcl": Known(
        "ROS 2, rcl", "a ROS 2 and source its setup.bash, or Python 3.11 to 3.13 on x86-64", planned=False
    ),
    "ros2": Known("ROS 2, rclcpp", "ros-<distro>-rclcpp, source its setup.bash", planned=False),
    "rclpy": Known("ROS 2, rclpy", "Python 3.11 to 3.13 on x86-64, and source no ROS 2", planned=False),
    "orocos": Known(
        "OROCOS RTT", "OROCOS RTT 2.9 for gnulinux and name its prefix in CMAKE_PREFIX_PATH", planned=False
    ),
    "cyclonedds": Known("Eclipse Cyclone DDS", "cyclonedds-dev and cyclonedds-tools", planned=False),
    "fastdds": Known("eProsima Fast DDS 2", "libfastrtps-dev and fastddsgen", planned=False),
    "dustdds": Known("Dust DDS", "Rust 1.87 or newer: cargo-web, or rustup", planned=False),
    "iceoryx": Known("Eclipse iceoryx", "libiceoryx-posh-dev and iceoryx", planned=False),
}


def remedy_for(name: str) -> str:
    """What to do to have the adapter."""
    if name in KNOWN_ADAPTERS:
        return KNOWN_ADAPTERS[name].remedy
    return "`rtmeter adapters` lists what was found; docs/add-a-middleware.md shows how to add one"
