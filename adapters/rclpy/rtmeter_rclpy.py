"""The Python half of the rclpy adapter: what a robot's node would do. The probe runs it.

Callbacks call into the core first, which stamps; nothing here reads a clock.
"""

import array
import gc
import sys
import threading
from collections.abc import Callable
from typing import Any

import rclpy
from rclpy.action import ActionClient, ActionServer
from rclpy.client import Client
from rclpy.clock import Clock, ClockType
from rclpy.context import Context
from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
from rclpy.executors import MultiThreadedExecutor, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import (
    DurabilityPolicy,
    HistoryPolicy,
    QoSProfile,
    ReliabilityPolicy,
    qos_policy_name_from_kind,
    qos_profile_services_default,
)
from rclpy.service import Service
from rclpy.signals import SignalHandlerOptions
from rclpy.subscription import Subscription
from rclpy.task import Future
from rclpy.timer import Timer, TimerInfo
from rtmeter_msgs.action import Errand
from rtmeter_msgs.msg import Message
from rtmeter_msgs.srv import Call

EXECUTORS: dict[str, Any] = {"single": SingleThreadedExecutor, "multi": MultiThreadedExecutor}
try:
    from rclpy.experimental import EventsExecutor
except ImportError:  # an rclpy that has none
    pass
else:
    EXECUTORS["events"] = EventsExecutor


RESULT, ACCEPTED, FEEDBACK = range(3)
"""What comes back for a request (rtm_reply)."""

PUBLISHER, SUBSCRIBER = range(2)
"""The ends of a topic (rtm_end)."""

NOTHING = array.array("B")


class End:
    """A publisher or subscription, and what is known of it."""

    def __init__(self, name: str) -> None:
        self.name, self.incompatible = name, ""
        self.handle: Publisher | Subscription | None = None

    def on_incompatible_qos(self, status: Any) -> None:
        self.incompatible = (
            qos_policy_name_from_kind(status.last_policy_kind).removesuffix("_QOS_POLICY").lower()
        )

    def facts(self) -> tuple[str, dict[str, str], int, str]:
        """Name, policies, how many ends it exchanges data with, the policy that kept others from it."""
        assert self.handle is not None
        is_publisher = isinstance(self.handle, Publisher)
        matched = self.handle.get_subscription_count() if is_publisher else self.handle.get_publisher_count()
        qos = self.handle.qos_profile
        policies = {
            "reliability": qos.reliability.name.lower(),
            "durability": qos.durability.name.lower(),
            "history": qos.history.name.lower(),
            "depth": str(qos.depth),
        }
        return self.name, policies, matched, self.incompatible


class RequestEnd:
    """A client or server of a service or an action, and what is known of it."""

    def __init__(self, name: str, handle: Client | Service | ActionClient | ActionServer) -> None:
        self._name, self._handle = name, handle

    def facts(self) -> tuple[str, dict[str, str], int, str]:
        """As End's; ROS 2's profile of services."""
        qos = qos_profile_services_default
        policies = {
            "reliability": qos.reliability.name.lower(),
            "durability": qos.durability.name.lower(),
            "history": qos.history.name.lower(),
            "depth": str(qos.depth),
        }
        matched = 0
        if isinstance(self._handle, Client):
            matched = int(self._handle.service_is_ready())
        elif isinstance(self._handle, ActionClient):
            matched = int(self._handle.server_is_ready())
        return self._name, policies, matched, ""


class Adapter:
    """A context, an executor, and what is made in them."""

    def __init__(
        self, executor: str, collects_garbage: bool, domain: int, steady: bool, waits_after_spin: bool
    ) -> None:
        if not collects_garbage:
            gc.disable()
        self._context = Context()
        rclpy.init(context=self._context, domain_id=domain, signal_handler_options=SignalHandlerOptions.NO)
        self._executor = EXECUTORS[executor](context=self._context)
        self._calls_on_other_threads = executor == "multi"
        self._clock = Clock(clock_type=ClockType.STEADY_TIME) if steady else None
        # Without a limit the EventsExecutor of rclpy 9.1.2 polls and calls nothing; nor does its spin() end.
        self._limit_s = 3600.0 if executor == "events" else None
        self._ends_with_executor = executor == "single" and not waits_after_spin
        self._spins = self._interrupted = self._is_ending = False
        self._nodes: list[Node] = []
        self._ends: list[End | RequestEnd] = []
        self._actions: list[ActionClient | ActionServer] = []
        self._wake = Future()
        self._told: Callable[[int, int], None] | None = None

    def watch(self, told: Callable[[int, int], None]) -> None:
        """From now on told(end, others) is called at each change of the matches of the ends made."""
        self._told = told

    def _matched(self, end: int) -> dict[str, Any]:
        """The callback of its events: a node's own other end is matched once it is made, and left out."""
        told = self._told
        if told is None:
            return {}
        return {"matched": lambda status: told(end, max(status.current_count - 1, 0))}

    def stop(self) -> None:
        """Undoes everything."""
        self._executor.shutdown()
        for action in self._actions:
            action.destroy()
        for node in self._nodes:
            node.destroy_node()
        rclpy.shutdown(context=self._context)

    def create_node(self, name: str) -> Node:
        node = Node(name, namespace="/rtmeter", context=self._context)
        self._nodes.append(node)
        self._executor.add_node(node)
        return node

    def create_timer(
        self,
        node: Node,
        period_ns: int,
        one_shot: bool,
        fired: Callable[[int, int], None],
        done: Callable[[], None],
    ) -> Timer:
        """A timer, not armed, that calls fired(expected, actual), then done() once it may be armed again."""

        def on_timer(info: TimerInfo) -> None:
            fired(info.expected_call_time.nanoseconds, info.actual_call_time.nanoseconds)
            if one_shot:
                timer.cancel()
            done()
            self._called()

        timer = node.create_timer(period_ns * 1e-9, on_timer, autostart=False, clock=self._clock)
        timer.timer_period_ns = period_ns  # whole, whatever became of the seconds
        return timer

    def create_publisher(
        self, node: Node, topic: str, qos: QoSProfile, name: str
    ) -> Callable[[int, memoryview], None]:
        """What publishes a message: its sequence number and its payload."""
        end = End(f"publisher of {name}")
        callbacks = PublisherEventCallbacks(
            incompatible_qos=end.on_incompatible_qos, **self._matched(PUBLISHER)
        )
        publisher = node.create_publisher(Message, topic, qos, event_callbacks=callbacks)
        end.handle = publisher
        self._ends.append(end)
        message = Message()

        def publish(sequence: int, payload: memoryview) -> None:
            message.sequence = sequence
            message.payload = array.array("B", payload)
            publisher.publish(message)

        return publish

    def create_subscription(
        self,
        node: Node,
        topic: str,
        qos: QoSProfile,
        name: str,
        received: Callable[[int, array.array], None],
    ) -> Subscription:
        """A subscription that calls received(sequence, payload)."""
        end = End(f"subscription of {name}")

        def on_message(message: Message) -> None:
            received(message.sequence, message.payload)
            self._called()

        callbacks = SubscriptionEventCallbacks(
            incompatible_qos=end.on_incompatible_qos, **self._matched(SUBSCRIBER)
        )
        end.handle = node.create_subscription(Message, topic, on_message, qos, event_callbacks=callbacks)
        self._ends.append(end)
        return end.handle

    def create_client(
        self,
        node: Node,
        is_action: bool,
        service: str,
        name: str,
        received: Callable[[int, int, array.array], None],
    ) -> Callable[[int, memoryview], None]:
        """What calls the service, or gives the action a goal; received(what, sequence, payload) is called for
        all that comes back."""

        def on_response(future: Future) -> None:
            response = future.result()
            received(RESULT, response.sequence, response.payload)
            self._called()

        def call(sequence: int, payload: memoryview) -> None:
            request = Call.Request(sequence=sequence, payload=array.array("B", payload))
            client.call_async(request).add_done_callback(on_response)

        def on_result(future: Future) -> None:
            result = future.result().result
            received(RESULT, result.sequence, result.payload)
            self._called()

        def on_feedback(message: Any) -> None:
            received(FEEDBACK, message.feedback.sequence, NOTHING)
            self._called()

        def give(sequence: int, payload: memoryview) -> None:
            def on_accepted(future: Future) -> None:
                goal_handle = future.result()
                if not goal_handle.accepted:
                    return
                received(ACCEPTED, sequence, NOTHING)
                goal_handle.get_result_async().add_done_callback(on_result)
                self._called()

            goal = Errand.Goal(sequence=sequence, payload=array.array("B", payload))
            client.send_goal_async(goal, feedback_callback=on_feedback).add_done_callback(on_accepted)

        client = ActionClient(node, Errand, service) if is_action else node.create_client(Call, service)
        if is_action:
            self._actions.append(client)
        self._ends.append(RequestEnd(f"client of {name}", client))
        return give if is_action else call

    def create_server(
        self,
        node: Node,
        is_action: bool,
        service: str,
        name: str,
        asked: Callable[[int, array.array], None],
    ) -> Callable[[int, int, memoryview], None]:
        """What replies to the request that asked(sequence, payload) was called for: reply(what, sequence,
        payload)."""
        answer: Any = None  # the response, or the result
        goal_handle: Any = None
        turn = threading.Lock()  # an executor of several threads executes goals beside each other

        def reply(what: int, sequence: int, payload: memoryview) -> None:
            if what == FEEDBACK:
                goal_handle.publish_feedback(Errand.Feedback(sequence=sequence))
                return
            answer.sequence = sequence
            answer.payload = array.array("B", payload)

        def on_request(request: Any, response: Any) -> Any:
            nonlocal answer
            answer = response
            asked(request.sequence, request.payload)
            self._called()
            return response

        def execute(given: Any) -> Any:
            nonlocal answer, goal_handle
            with turn:
                answer = result = Errand.Result()
                goal_handle = given
                asked(given.request.sequence, given.request.payload)
            given.succeed()
            self._called()
            return result

        if is_action:
            server = ActionServer(node, Errand, service, execute)
            self._actions.append(server)
        else:
            server = node.create_service(Call, service, on_request)
        self._ends.append(RequestEnd(f"{'action' if is_action else 'service'} {name}", server))
        return reply

    def spin(self) -> bool:
        """The executor's own spin(), on any thread, until interrupt() or a limit; True if it was interrupted.
        Where the executor is still needed it ends with a future, not with the executor."""
        self._spins = True
        if self._ends_with_executor:
            if not self._interrupted:
                self._executor.spin()
            return self._interrupted
        self._executor.spin_until_future_complete(self._wake, self._limit_s)
        self._spins = False
        is_interrupted = self._wake.done()
        self._wake = Future()
        return is_interrupted

    def wait(self, timeout_ns: int) -> None:
        """Until a callback ran, interrupt(), or the time is over; callbacks of other threads interrupt."""
        wake = self._wake
        if not wake.done():
            self._executor.spin_once_until_future_complete(wake, timeout_ns * 1e-9)
        if wake.done() or not self._calls_on_other_threads:
            self._wake = Future()

    def spin_some(self) -> None:
        """One callback, if one is ready: rclpy has no more than that."""
        self._executor.spin_once(0)

    def interrupt(self) -> None:
        """From any thread: ends the call under way, or the next one. Where nothing is waited for afterwards a
        spin() ends as a node's does, by the end of its executor."""
        self._interrupted = True
        self._wake.set_result(None)
        if self._spins and self._ends_with_executor and not self._is_ending:
            self._is_ending = True
            # By its own thread: shut down by another just before it waits, nothing is left that wakes it.
            self._executor.create_task(self._executor.shutdown, 0)

    def _called(self) -> None:
        if self._calls_on_other_threads and not self._spins:
            self._wake.set_result(None)

    def ends(self) -> list[tuple[str, dict[str, str], int, str]]:
        return [end.facts() for end in self._ends]

    def other_nodes(self) -> int:
        names = self._nodes[0].get_node_names() if self._nodes else []
        return max(len(names) - len(self._nodes), 0)

    def now_ns(self) -> int:
        """The clock of steady timers, to find out which it is."""
        assert self._clock is not None
        return self._clock.now().nanoseconds

    def facts(self) -> dict[str, str]:
        """What is in effect in this interpreter."""
        return {
            "python": sys.version.split()[0],
            "executor": self._executor.__class__.__name__,
            "gc": f"on, thresholds {gc.get_threshold()}" if gc.isenabled() else "off",
            "switch_interval_ns": str(round(sys.getswitchinterval() * 1e9)),
        }


def qos_of(depth: int, reliable: bool, keep_all: bool, transient_local: bool) -> QoSProfile:
    return QoSProfile(
        depth=depth,
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        history=HistoryPolicy.KEEP_ALL if keep_all else HistoryPolicy.KEEP_LAST,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if transient_local else DurabilityPolicy.VOLATILE,
    )
