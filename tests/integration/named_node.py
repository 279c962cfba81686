"""A node of rclpy with two timers, two subscriptions (one of serialized messages), a service and its client,
which records its callbacks: to attach to by name.

python named_node.py FILE: a line per call, as it comes: the callback's name, and when.
"""

from __future__ import annotations

import contextlib
import signal
import sys
from pathlib import Path

import rclpy
from rcl_interfaces.srv import ListParameters as Service
from rclpy.clock import Clock, ClockType
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rosgraph_msgs.msg import Clock as Message


def main(file: str) -> None:
    rclpy.init()
    node = Node("arm", namespace="/left")
    out = Path(file).open("w", buffering=1)  # noqa: SIM115, to the end; it may be killed
    steady = Clock(clock_type=ClockType.STEADY_TIME)
    publisher = node.create_publisher(Message, "tick", 10)
    raw_publisher = node.create_publisher(Message, "raw", 10)
    client = node.create_client(Service, "ask")

    def stamp(name: str) -> None:
        out.write(f"{name} {steady.now().nanoseconds}\n")

    def slow() -> None:
        stamp("slow")
        publisher.publish(Message())
        raw_publisher.publish(Message())
        for _ in range(2):  # so that an answer and the next request are there at once
            client.call_async(Service.Request()).add_done_callback(lambda _: stamp("answered"))

    def asked(_: Service.Request, response: Service.Response) -> Service.Response:
        stamp("asked")
        return response

    node.create_timer(0.020, lambda: stamp("fast"), clock=steady)
    node.create_timer(0.050, slow, clock=steady)
    node.create_subscription(Message, "tick", lambda _: stamp("heard"), 10)
    node.create_subscription(Message, "raw", lambda _: stamp("heard_raw"), 10, raw=True)
    node.create_service(Service, "ask", asked)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    signal.signal(signal.SIGTERM, lambda *_: executor.shutdown(0))
    print("ready", flush=True)
    with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
        executor.spin()


if __name__ == "__main__":
    main(sys.argv[1])
