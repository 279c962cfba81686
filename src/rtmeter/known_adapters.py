"""The adapters that rtmeter has, or plans: what each measures with, and what it needs to be built."""

KNOWN_ADAPTERS: dict[str, tuple[str, str]] = {
    "posix": ("Linux system calls", "build rtmeter: make"),
    "null": ("nothing: scripted delays that test the instrument", "build rtmeter: make"),
    "ros1": ("ROS 1, roscpp", "install ROS Noetic's roscpp and source its setup.bash, then make"),
    "rcl": ("ROS 2, rcl", "install ROS 2 (ros-<distro>-rcl), source its setup.bash, then make"),
    "ros2": ("ROS 2, rclcpp", "install ROS 2 (ros-<distro>-rclcpp), source its setup.bash, then make"),
    "rclpy": ("ROS 2, rclpy", "install ROS 2 (ros-<distro>-rclpy) and source its setup.bash"),
    "orocos": ("OROCOS RTT", "install liborocos-rtt-dev (2.9), then make"),
    "cyclonedds": ("Eclipse Cyclone DDS", "install cyclonedds-dev and cyclonedds-tools, then make"),
    "fastdds": ("eProsima Fast DDS", "install libfastdds-dev (Debian: libfastrtps-dev), then make"),
    "dustdds": ("Dust DDS", "install Rust's cargo, then make"),
    "iceoryx": ("Eclipse iceoryx", "install libiceoryx-posh-dev, then make"),
}
"""name: (middleware, what to do to have it)."""


def remedy_for(name: str) -> str:
    """What to do to have the adapter."""
    if name in KNOWN_ADAPTERS:
        return KNOWN_ADAPTERS[name][1]
    return "`rtmeter adapters` lists what was found; docs/add-a-middleware.md shows how to add one"
