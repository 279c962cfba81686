"""The quantities of each measurement, as differences of columns (docs/method.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmeter.model import ABSENT

Columns = Mapping[str, npt.NDArray[np.int64]]
"""A chunk of samples: int64 columns of one length by name, among them ``k`` and ``status``."""

Ints = npt.NDArray[np.int64]
"""int64 array of shape (rows,)."""

Floats = npt.NDArray[np.float64]

Chunks = Callable[[], Iterable[Columns]]
"""Starts anew over the samples: chunks of any length in the order of k."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A signed sum of columns, nanoseconds: those in ``plus`` less those in ``minus``, plus ``timeouts``
    times the one-shot timeout. ``per_release``: whether every release counts in a view of its own."""

    name: str
    plus: tuple[str, ...]
    minus: tuple[str, ...]
    timeouts: int = 0
    per_release: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns the quantity is made of."""
        return self.plus + self.minus

    def of(self, columns: Columns, timeout_ns: int) -> Ints:
        """The quantity of each row in nanoseconds, shape (rows,); ABSENT where one of its columns is."""
        total = columns[self.plus[0]] - (columns[self.minus[0]] if self.minus else 0)
        for name in self.plus[1:]:
            total += columns[name]
        for name in self.minus[1:]:
            total -= columns[name]
        if self.timeouts:
            total += self.timeouts * timeout_ns
        for name in self.columns:
            absent = columns[name] == ABSENT
            if absent.any():
                total[absent] = ABSENT
        return total


_DISPATCH = Quantity("dispatch", ("callback_ns",), ("reported_actual_ns",))

_MATCHED = Quantity("time_to_matched", ("matched_ns",), ("started_ns",), per_release=True)

_OF_ACTIONS = (
    Quantity("accepted", ("accepted_ns",), ("release_ns",)),
    Quantity("first_feedback", ("first_feedback_ns",), ("release_ns",)),
    Quantity("result", ("received_ns",), ("release_ns",)),
)

_OF_KERNEL = (
    Quantity("send_path", ("kernel_sent_ns",), ("sent_ns",)),
    Quantity("wire_ping", ("server_kernel_received_ns",), ("kernel_sent_ns",)),
    Quantity("server_receive_path", ("server_received_ns",), ("server_kernel_received_ns",)),
    Quantity("server_send_path", ("server_kernel_sent_ns",), ("server_sent_ns",)),
    Quantity("wire_pong", ("kernel_received_ns",), ("server_kernel_sent_ns",)),
    Quantity("receive_path", ("received_ns",), ("kernel_received_ns",)),
)

_QUANTITIES: dict[str, tuple[Quantity, ...]] = {
    "wakeup": (Quantity("latency", ("wake_ns",), ("release_ns",), per_release=True),),
    "timer/one_shot": (
        Quantity("measured", ("callback_ns",), ("armed_before_ns",), timeouts=-1, per_release=True),
        Quantity("measured_after", ("callback_ns",), ("armed_after_ns",), timeouts=-1),
        Quantity("reported", ("reported_actual_ns",), ("reported_expected_ns",)),
        Quantity(
            "difference",
            ("reported_actual_ns", "armed_before_ns"),
            ("reported_expected_ns", "callback_ns"),
            timeouts=1,
        ),
        Quantity(
            "difference_after",
            ("reported_actual_ns", "armed_after_ns"),
            ("reported_expected_ns", "callback_ns"),
            timeouts=1,
        ),
        _DISPATCH,
    ),
    "timer/periodic": (
        Quantity("latency", ("callback_ns",), ("release_ns",), per_release=True),
        _DISPATCH,
    ),
    "roundtrip": (
        Quantity("response", ("received_ns",), ("release_ns",), per_release=True),
        Quantity("round_trip", ("received_ns",), ("sent_ns",)),
        Quantity("ping", ("server_received_ns",), ("sent_ns",)),
        Quantity("pong", ("received_ns",), ("server_sent_ns",)),
        *_OF_KERNEL,
    ),
    "request": (
        Quantity("response", ("received_ns",), ("release_ns",), per_release=True),
        Quantity("round_trip", ("received_ns",), ("sent_ns",)),
        Quantity("request", ("server_received_ns",), ("sent_ns",)),
        Quantity("respond", ("received_ns",), ("server_sent_ns",)),
        *_OF_ACTIONS,
    ),
    "cycle": (
        Quantity("completion", ("response_received_ns",), ("release_ns",), per_release=True),
        Quantity("cycle_delay", ("start_ns",), ("release_ns",), per_release=True),
        Quantity("request", ("request_received_ns",), ("request_sent_ns",)),
        Quantity("respond", ("response_received_ns",), ("response_sent_ns",)),
    ),
    "chain": (Quantity("reaction", ("output_ns",), ("before_ns",), per_release=True),),
    "discovery": (
        Quantity("time_to_first", ("first_ns",), ("started_ns",), per_release=True),
        _MATCHED,
        Quantity("start_delay", ("started_ns",), ("release_ns",)),
    ),
    "own_loop": (
        Quantity("completion", ("done_ns",), ("release_ns",), per_release=True),
        Quantity("latency", ("wake_ns",), ("release_ns",), per_release=True),
    ),
    "loop": (
        Quantity("completion", ("free_ns",), ("release_ns",), per_release=True),
        Quantity("latency", ("wake_ns",), ("release_ns",), per_release=True),
        Quantity("busy", ("busy_ns",), ()),
        Quantity("interval", ("interval_ns",), ()),
    ),
    "imported": (Quantity("latency", ("latency_ns",), (), per_release=True),),
}


KNOWN_QUANTITIES = (
    *dict.fromkeys(quantity.name for found in _QUANTITIES.values() for quantity in found),
    "cycle_delay_normalised",
)
"""Every quantity that a summary may have, by name."""


ON_THE_GRID = ("latency", "completion", "cycle_delay")
"""Quantities that are counted from a release."""


def grid_inferred(meta: Mapping[str, Any]) -> bool:
    """Whether the releases were inferred from the callbacks themselves: what delays all of them alike is in
    no quantity on the grid."""
    return meta.get("t0_from") in ("inferred", "estimated")  # the latter: rtmeter 0.1.0's word


def kind(meta: Mapping[str, Any]) -> str:
    """``wakeup``, ``timer/one_shot``, ``timer/periodic``, ``roundtrip``, ``request``, ``cycle``, ``chain``,
    ``discovery``, ``own_loop``, ``loop`` or ``imported``."""
    measurement = str(meta["measurement"])
    return f"timer/{meta['mode']}" if measurement == "timer" else measurement


def quantities(meta: Mapping[str, Any]) -> tuple[Quantity, ...]:
    """The quantities of a measurement; the first is the judged one, which ``judge`` may choose. No dispatch
    where ``reported_clock`` says that the middleware's times are another clock's than the stamps; what an
    action tells on the way where ``interface`` says that there is one, the kernel where ``kernel_stamps``
    asked it; of a discovery no match where ``matches``, the ends of which a middleware tells, is empty."""
    found = _QUANTITIES[kind(meta)]
    if judge := meta.get("judge"):
        found = tuple(sorted(found, key=lambda quantity: quantity.name != judge))
    if meta.get("reported_clock", "monotonic") != "monotonic":
        found = tuple(quantity for quantity in found if quantity is not _DISPATCH)
    if not meta.get("kernel_stamps"):
        found = tuple(quantity for quantity in found if quantity not in _OF_KERNEL)
    if meta.get("matches") == []:
        found = tuple(quantity for quantity in found if quantity is not _MATCHED)
    if meta.get("interface") != "action":
        found = tuple(quantity for quantity in found if quantity not in _OF_ACTIONS)
    return found


def judged_quantity(meta: Mapping[str, Any]) -> Quantity:
    """The quantity that verdicts look at: the first of the measurement's."""
    return quantities(meta)[0]


def timeout_ns(meta: Mapping[str, Any]) -> int:
    """A one-shot timer's timeout, in nanoseconds; elsewhere of no effect. A cell that has no
    ``timeout_ns`` carries it as its period."""
    timeout = meta.get("timeout_ns")
    return int(meta["period_ns"] if timeout is None else timeout)
