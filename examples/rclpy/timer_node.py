"""A node of rclpy whose timer is recorded: timer_node.py FOLDER RELEASES"""

from __future__ import annotations

import sys

import rclpy
from rclpy.node import Node

from rtmeter.loop import Loop


class Controller(Node):
    """Counts its timer's callbacks, and records each."""

    def __init__(self, loop: Loop) -> None:
        super().__init__("controller")
        self.calls, self._loop = 0, loop
        self.create_timer(0.01, self._control)

    def _control(self) -> None:
        self._loop.wake()  # rclpy does not say when it was due: the grid is that of the earliest callback
        self.calls += 1
        self._loop.done()


def main(folder: str, releases: int) -> None:
    """Spins until so many releases have passed."""
    rclpy.init()
    with Loop("rclpy-timer", "10ms", folder=folder, miss_ratio=0.5, warm_up="50ms") as loop:
        node = Controller(loop)
        while node.calls < releases:
            rclpy.spin_once(node)
        node.destroy_node()
    rclpy.shutdown()
    print(node.calls, "calls")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
