"""What the options of a cell rule out together, and the defaults that depend on other options."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from pydantic import ValidationError

from rtmeter.campaign.options import KNOWN, MOST_RELEASES, OPTIONS, CellOptions
from rtmeter.campaign.strain_options import is_address
from rtmeter.campaign.wrong import as_rtmeter_error, inapplicable
from rtmeter.errors import RtmeterError
from rtmeter.model import LOCAL, TWO_ENDS
from rtmeter.values import format_duration

ATTACHED = "attached"
"""The adapter of a program that nobody changed."""

_MS = 1_000_000
_S = 1_000 * _MS

_PERIODS_NS = {"roundtrip": 10 * _MS, "request": 10 * _MS, "discovery": 2 * _S}
_DURATIONS_NS = {"roundtrip": 600 * _S, "request": 600 * _S, "discovery": 60 * _S}
"""By default, where they are not 1 ms and 10 s."""


def settle(given: Mapping[str, object], scale: float = 1.0) -> CellOptions:
    """The options given, checked for contradictions, with every default filled in.

    ``scale`` multiplies the number of measured releases. Raises RtmeterError naming the field.
    """
    try:
        options = CellOptions.model_validate(dict(given))
    except ValidationError as error:
        raise as_rtmeter_error(error, KNOWN) from None
    for name in OPTIONS:
        if name in given and not CellOptions.applies(name, options.measurement):
            raise inapplicable(name, given[name], options.measurement, CellOptions.meant_for(name))
    check(options)
    return options.model_copy(update=fill_in(options, scale))


def check(o: CellOptions) -> None:
    """Raises RtmeterError for the first contradiction."""
    _check_length(o)
    _check_sleep(o)
    _check_deadlines(o)
    _check_scheduling(o)
    _check_conditions(o)
    _check_server(o)
    _check_on(o)
    _check_receive(o)
    _check_attached(o)
    _check_chain(o)
    _check_discovery(o)
    if o.script is not None and o.adapter != "null":
        _refuse(o, "script", f"is only for the null adapter, not for {o.adapter}", "leave it out")


def _refuse(o: CellOptions, field: str, message: str, remedy: str, value: object = None) -> None:
    raise RtmeterError(
        message, field=field, value=getattr(o, field) if value is None else value, remedy=remedy
    )


def _check_length(o: CellOptions) -> None:
    if o.samples is not None and o.duration is not None:
        _refuse(o, "samples", "contradicts duration: both say how long to measure", "give one of the two")
    if o.one_shot:
        if o.timeout is None:
            _refuse(o, "mode", "needs a timeout", "give a timeout, e.g. 1ms")
        if o.period not in (None, o.timeout):
            _refuse(
                o,
                "period",
                "contradicts mode one_shot: a shot is armed when the one before has fired",
                "leave it out; the timeout sets the pace",
                format_duration(o.period or 0),
            )
        if o.overrun is not None:
            _refuse(o, "overrun", "means nothing for one_shot timers", "leave it out")
        if o.drive == "sleep_then_spin_some":
            _refuse(
                o,
                "drive",
                "needs releases to sleep until, which one_shot timers have not",
                "choose spin or poll",
            )
    elif o.timeout is not None:
        _refuse(
            o,
            "timeout",
            "means nothing for periodic timers",
            "give mode one_shot, or a period instead",
            format_duration(o.timeout),
        )


def _check_sleep(o: CellOptions) -> None:
    if o.sleep_offset is None:
        return
    asked = format_duration(o.sleep_offset)
    if o.drive != "sleep_then_spin_some":
        remedy = "leave it out, or choose drive sleep_then_spin_some"
        _refuse(o, "sleep_offset", "means nothing: nobody sleeps until a release", remedy, asked)
    if o.sleep_offset >= _period_ns(o):
        remedy = "give less than that"
        message = f"is no less than the period ({format_duration(_period_ns(o))})"
        _refuse(o, "sleep_offset", message, remedy, asked)


def _check_deadlines(o: CellOptions) -> None:
    if o.deadline is None:
        if o.break_on_late:
            remedy = "give a deadline, or leave it out"
            _refuse(o, "break_on_late", "says nothing without a deadline", remedy, True)
        for field in ("miss_ratio", "confidence", "criticality", "horizon"):
            if field in o.model_fields_set:
                remedy = "give a deadline, or leave it out"
                _refuse(o, field, "says nothing without a deadline", remedy, getattr(o, field))
    if o.loss_timeout is not None and o.loss_timeout < _missed_after_ns(o):
        origin = "the deadline" if o.deadline else "one period, the deadline by default,"
        _refuse(
            o,
            "loss_timeout",
            f"is shorter than {origin} ({format_duration(_missed_after_ns(o))})",
            "give a longer loss timeout or a shorter deadline",
            format_duration(o.loss_timeout),
        )


def _check_scheduling(o: CellOptions) -> None:
    if o.child_threads is not None and o.child_threads.policy == "deadline":
        _refuse(
            o,
            "child_threads",
            "cannot have the deadline policy",
            "choose other, fifo:P or rr:P",
            str(o.child_threads),
        )
    inherited = o.apply == "before_init" and o.scheduling.policy not in ("other", "deadline")
    if o.timer_slack is not None and inherited:
        _refuse(
            o,
            "timer_slack",
            f"means nothing with scheduling {o.scheduling}: threads of a real-time policy have none",
            "leave it out, or give apply after_init: then it is that of the middleware's threads",
            format_duration(o.timer_slack),
        )
    if o.scheduling.policy != "deadline":
        return
    for field in ("cpus", "server_cpus"):
        if getattr(o, field) is not None:
            _refuse(
                o,
                field,
                f"contradicts scheduling {o.scheduling}: Linux lets such a thread run anywhere",
                "leave it out, or use a cpuset",
                ",".join(map(str, getattr(o, field))),
            )
    if o.apply == "before_init" and "apply" in o.model_fields_set:
        _refuse(
            o,
            "apply",
            f"contradicts scheduling {o.scheduling}: such a thread cannot start others",
            "choose after_init",
        )


RECEIVED_IN_CYCLES = {
    "spin": ("spin", "listener"),
    "sleep_then_spin_some": ("spin_once", "listener", "poll"),
    "poll": ("poll",),
}
"""By drive: a thread that sleeps to the release does not spin, one that spins does nothing else."""


def _check_receive(o: CellOptions) -> None:
    """What cannot receive, whatever the adapter."""
    for field in ("receive", "server_receive"):
        if getattr(o, field) == "call" and (o.measurement != "request" or field == "server_receive"):
            _refuse(o, field, "is how a request's client alone can receive", "choose another way")
    if o.receive == "call" and o.in_flight == "open":
        message = "contradicts in_flight open: a call that blocks is the only one"
        _refuse(o, "receive", message, "choose in_flight one, or another way")
    if o.measurement in TWO_ENDS and o.receive == "spin" and o.scheduling.policy == "deadline":
        message = f"contradicts scheduling {o.scheduling}: such a thread cannot start one that spins"
        _refuse(o, "receive", message, "choose spin_once, or another policy")
    if o.measurement == "cycle" and o.drive is not None and o.receive is not None:
        ways = RECEIVED_IN_CYCLES[o.drive]
        if o.receive not in ways:
            message = f"cannot apply to a cycle driven by {o.drive}"
            _refuse(o, "receive", message, f"choose {' or '.join(ways)}, or leave it out")


def _check_server(o: CellOptions) -> None:
    """What is asked of the server's host alone, where that is no other one."""
    if o.server_shared_clock is not None and o.shared_clock is None:
        _refuse(o, "server_shared_clock", "means nothing without shared_clock", "give both, or none")
    if o.hosts is not None and o.hosts.component != LOCAL:
        return
    for field in ("server_conditions", "server_load"):
        if getattr(o, field) is not None:
            message, remedy = "means nothing where client and server share a host", f"give {field[7:]}"
            raise RtmeterError(message, field=field, remedy=f"{remedy}, or hosts with a component")
    if o.shared_clock is not None:
        message = "means nothing where client and server share a host, and so a clock"
        _refuse(o, "shared_clock", message, "leave it out, or give hosts with a component")


def _check_on(o: CellOptions) -> None:
    """What cannot be had of a target, which is reached by a shell alone."""
    if o.on in (None, LOCAL):
        return
    if o.hosts is not None and o.hosts.component != LOCAL:
        remedy = "leave out one of the two: on a target both ends run there"
        _refuse(o, "hosts.component", f"contradicts on {o.on}", remedy, o.hosts.component)
    if o.traffic is not None and o.traffic.to is not None and not is_address(o.traffic.to):
        remedy = "give its IP address: names may mean something else there"
        _refuse(o, "traffic.to", f"is no address, as on {o.on} it must be", remedy, o.traffic.to)


def _check_attached(o: CellOptions) -> None:
    """A loop is a running program's, or that of one that is started."""
    if (o.adapter == ATTACHED) != (o.measurement == "loop"):
        message = f"does not measure {o.measurement}"
        remedy = "it measures loop" if o.adapter == ATTACHED else f"choose {ATTACHED}, or another measurement"
        _refuse(o, "adapter", message, remedy)
    if o.measurement != "loop":
        return
    if o.command is None and o.pid is None:
        _refuse(o, "command", "is missing", "give the command that starts the program, or pid")
    if o.command is not None and o.pid is not None:
        _refuse(o, "pid", "contradicts command: both say which program", "give one of the two")
    if o.samples is not None and o.period is None:
        _refuse(o, "samples", "says not how long, without a period", "give the period, or a duration")


def _check_chain(o: CellOptions) -> None:
    if o.measurement != "chain":
        return
    if o.graph is None:
        _refuse(o, "graph", "is missing", "give the YAML file of its stages (docs/chain.md)")
        return
    for field in ("break_on_late", "explain"):
        if getattr(o, field):
            _refuse(o, field, "is not for chains, whose reaction is known afterwards", "leave it out", True)
    if o.period is not None:
        remedy = "leave it out"
        _refuse(o, "period", "is the graph's to say, of each source", remedy, format_duration(o.period))
    if o.overrun is not None:
        _refuse(o, "overrun", "is always catch_up in a chain", "leave it out", o.overrun)
    if o.payload < (least := o.graph.payload_bytes):
        message = "is too small for the samples that a message of this graph carries"
        _refuse(o, "payload", message, f"give at least {least}")


def _check_discovery(o: CellOptions) -> None:
    if o.measurement != "discovery":
        return
    for field in ("break_on_late", "explain"):
        if getattr(o, field):
            _refuse(
                o, field, "is not for discoveries, which many processes make together", "leave it out", True
            )
    if o.overrun is not None:
        _refuse(o, "overrun", "means nothing: participants start at their release", "leave it out")
    remedy = "leave it out: middleware's threads begin at each release, and have what the process has"
    for field in ("child_threads", "child_cpus"):
        if (given := getattr(o, field)) is not None:
            _refuse(o, field, "cannot be had in a discovery", remedy, str(given))
    if o.apply == "after_init" or o.scheduling.policy == "deadline":
        field = "apply" if o.apply == "after_init" else "scheduling"
        _refuse(o, field, "cannot be had in a discovery", remedy, str(getattr(o, field)))
    for field in ("loss_timeout", "deadline"):
        if (given := getattr(o, field) or 0) >= _period_ns(o):
            message = (
                f"is no shorter than the period ({format_duration(_period_ns(o))}), at which all starts anew"
            )
            _refuse(o, field, message, "give less, or a longer period", format_duration(given))


def _check_conditions(o: CellOptions) -> None:
    for field, asked in (("conditions", o.conditions), ("server_conditions", o.server_conditions)):
        if asked is not None and asked.stray_tasks == "move" and not asked.isolate:
            remedy = f"give {field}.isolate, the CPUs that they are to leave"
            _refuse(o, f"{field}.stray_tasks", "does not say away from where", remedy, "move")
    isolated = set((o.conditions and o.conditions.isolate) or ())
    for field, cpus in (("cpus", o.cpus), ("child_cpus", o.child_cpus)):
        if isolated and cpus is not None and not isolated.issuperset(cpus):
            _refuse(
                o,
                field,
                f"has CPUs outside of conditions.isolate ({','.join(map(str, sorted(isolated)))})",
                "choose among the isolated CPUs, or isolate these too",
                ",".join(map(str, cpus)),
            )


def _period_ns(o: CellOptions) -> int:
    if o.one_shot:
        assert o.timeout is not None, "checked before"
        return o.timeout
    if o.graph is not None:
        return o.graph.period_ns
    return o.period or _PERIODS_NS.get(o.measurement, _MS)


def _missed_after_ns(o: CellOptions) -> int:
    """The deadline, for round trips and requests one period by default; 0 if there is none."""
    return o.deadline or (_period_ns(o) if o.measurement in TWO_ENDS else 0)


def fill_in(o: CellOptions, scale: float) -> dict[str, Any]:
    """The defaults that depend on other options; ``scale`` multiplies the measured releases."""
    period_ns = _period_ns(o)
    duration_ns = o.duration or _DURATIONS_NS.get(o.measurement, 10 * _S)
    samples = o.samples or -(-duration_ns // period_ns)
    scaled = -(-(samples * Fraction(str(scale))) // 1)
    if scaled > MOST_RELEASES:
        _refuse(
            o,
            "duration",
            "is more releases than rtmeter can count",
            "measure for a shorter time",
            format_duration(duration_ns),
        )
    filled: dict[str, Any] = {"period": period_ns, "samples": max(1, int(scaled))}
    if o.measurement == "loop":
        filled["period"] = o.period  # else it is measured
    if o.pid is not None and "warm_up" not in o.model_fields_set:
        filled["warm_up"] = 0  # it runs already
    if o.measurement in (*TWO_ENDS, "cycle", "chain") and o.loss_timeout is None:
        filled["loss_timeout"] = max(500 * _MS, _missed_after_ns(o))
    if o.measurement == "discovery" and o.loss_timeout is None:
        filled["loss_timeout"] = max(period_ns // 2, o.deadline or 1)
    if o.second_topic is not None:
        filled["second_topic"] = o.second_topic.beside(o.payload, period_ns)
    if o.scheduling.policy == "deadline":
        filled["apply"] = "after_init"
    return filled
