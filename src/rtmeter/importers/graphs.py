"""Other tools' graphs → the YAML of a chain (docs/chain.md): iRobot's topologies, Autoware's reference."""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import yaml

from rtmeter.errors import RtmeterError
from rtmeter.host.files import open_file
from rtmeter.values import from_json

_DEFAULT_TIMING = Path("system", "timing", "default.hpp")
_SERVICES = ("servers", "clients", "action_servers", "action_clients")
_AUTOWARE_KINDS = ("Sensor", "Transform", "Fusion", "Cyclic", "Reactor", "Intersection", "Command")
_NODE = re.compile(r"SystemType::(\w+)>\s*\(\s*nodes::\w+\s*\{(.*?)\}\s*\)\s*\)\s*;", re.DOTALL)
_KEY = re.compile(r"\.(\w+)\s*=\s*(\{[^}]*\}|\"[^\"]*\"|[\w:]+)")
_CONNECTION = re.compile(r"\{(\s*\.input_topic[^{}]*)\}")
_TIME = re.compile(r"time_t\s+(\w+)\s*=\s*(?:\w+::)*(nanoseconds|microseconds|milliseconds|seconds)\((\d+)\)")
_COMMENT = re.compile(r"(\"(?:\\.|[^\"\\\n])*\")|//[^\n]*|/\*.*?\*/", re.DOTALL)  # or a text, which stays
_MOST_COPIES = 1000
_MOST_NS = 366 * 24 * 3600 * 1e9
_UNITS = {"nanoseconds": "ns", "microseconds": "us", "milliseconds": "ms", "seconds": "s"}


@dataclass
class Foreign:
    """A graph as it was found: stages (name → keys of the YAML) and what is not as there."""

    source: str
    stages: dict[str, dict[str, Any]] = field(default_factory=dict)
    differs: list[str] = field(default_factory=list)

    def yaml(self) -> str:
        """The file, a line a stage; what differs is said at its top."""
        lines = [f"# {self.source}", *(f"# Not as there: {one}." for one in self.differs), "stages:"]
        for name, stage in self.stages.items():
            keys = []
            for key, value in stage.items():
                of_list = f"[{', '.join(map(_quoted, value))}]" if isinstance(value, list) else ""
                keys.append(f"{key}: {of_list or (_quoted(value) if isinstance(value, str) else 'true')}")
            lines.append(f"  {_quoted(name)}: {{{', '.join(keys)}}}")
        return "\n".join(lines) + "\n"

    def add(self, path: Path, name: str, stage: dict[str, Any]) -> None:
        """Raises RtmeterError if another has the name."""
        if name in self.stages:
            message, remedy = "is the name of two of its nodes or topics", "name one of them anew"
            raise _wrong(path, "name", name, message, remedy)
        self.stages[name] = stage


def read(path: Path, timing: Path | None = None) -> Foreign:
    """The file's graph. ``timing``: the header with the times of Autoware's nodes, if it is not beside it.

    Raises RtmeterError naming file, field, value and remedy.
    """
    text = _text(path)
    code = _COMMENT.sub(lambda found: found[1] or " ", text)
    if text.lstrip().startswith("{"):
        if timing is not None:
            remedy = "leave it out: a topology has its nodes' periods"
            message = f"means nothing for {path.name}"
            raise RtmeterError(message, field="--timing", value=str(timing), remedy=remedy)
        found = _irobot(path, text)
    elif "SystemType::" in code:
        found = _autoware(path, code, timing)
    else:
        remedy = "give a topology of ros2-performance (JSON), or autoware_system_builder.hpp"
        raise RtmeterError("is no graph that is known", where=str(path), remedy=remedy)
    if not found.stages:
        raise RtmeterError("has no node that publishes anything", where=str(path), remedy="give another file")
    try:
        _open_circles(found)
    except RecursionError:
        remedy = "give a part of it"
        raise RtmeterError("has too long a way from node to node", where=str(path), remedy=remedy) from None
    _wait_for_none(path, found)
    return found


def _text(path: Path) -> str:
    try:
        with TextIOWrapper(open_file(path), encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise RtmeterError(f"cannot be read: {why}", where=str(path), remedy="give a file") from None


def _irobot(path: Path, text: str) -> Foreign:
    """Each publisher of a node is a stage that hears what the node hears, at its own period; a node that only
    hears is a stage that ends chains. Its stages share a process."""
    try:
        nodes = from_json(text)["nodes"]
        assert isinstance(nodes, list)
    except (ValueError, KeyError, TypeError, AssertionError):
        remedy = "give a topology of ros2-performance: an object with the list nodes"
        raise RtmeterError("is no topology", where=str(path), field="nodes", remedy=remedy) from None
    found = Foreign(f"From {path.name}, a topology of iRobot's ros2-performance")
    topics = [one["topic_name"] for node in nodes for one in _list(path, node, "publishers")]
    published = {str(topic).strip("/"): _name(path, "topic_name", topic) for topic in topics}
    for number, node in enumerate(nodes):
        name = _name(path, f"nodes[{number}].node_name", node.get("node_name"))
        subscribed = _list(path, node, "subscribers")
        heard = {str(one["topic_name"]).strip("/"): one["topic_name"] for one in subscribed}
        named = {topic: _name(path, f"{name}.topic_name", given) for topic, given in heard.items()}
        silent = [named[topic] for topic in named if topic not in published]
        _pass_over_silent(found, name, silent, ())
        found.differs += [f"{name} has no {key}" for key in _SERVICES if node.get(key)]
        inputs = [published[topic] for topic in heard if topic in published]
        count = _copies(path, name, node.get("number", 1))
        if count > 1 and node.get("publishers"):
            found.differs.append(f"{name} is there once, not {count} times")
        for one in _list(path, node, "publishers"):
            topic = _name(path, f"{name}.topic_name", one["topic_name"])
            if topic in found.stages:
                message = "has two publishers: the stages of a chain have one each"
                raise _wrong(path, "topic_name", topic, message, "name one of the topics anew")
            period = _period_of(path, topic, one)
            stage: dict[str, Any] = {"inputs": inputs} if inputs else {}
            found.add(path, topic, stage | {"period": period, "process": name})
        if inputs and not node.get("publishers"):
            for copy in range(1, count + 1):
                own = name if count == 1 else f"{name}_{copy}"
                while own in found.stages or own in published.values():
                    own += "_node"
                found.add(path, own, {"inputs": inputs})
    return found


def _copies(path: Path, name: str, given: object) -> int:
    if not isinstance(given, int) or not 1 <= given <= _MOST_COPIES:
        remedy = f"give how many nodes there are, 1 to {_MOST_COPIES:,}"
        raise _wrong(path, f"{name}.number", given, "is no number of nodes", remedy)
    return given


def _period_of(path: Path, topic: str, publisher: Mapping[str, Any]) -> str:
    """As the tool takes it: of both the frequency."""
    key = "freq_hz" if "freq_hz" in publisher else "period_ms"
    given = publisher.get(key)
    number = given if isinstance(given, int | float) and 0 < given < _MOST_NS else math.nan
    exact_ns = 1e9 / number if key == "freq_hz" else 1e6 * number
    if not 0.5 < exact_ns < _MOST_NS:
        remedy = "give how often it publishes, in milliseconds (or freq_hz)"
        raise _wrong(path, f"{topic}.{key}", given, "is no period", remedy)
    period_ns = round(exact_ns)
    return f"{period_ns}ns" if period_ns % 10**6 else f"{period_ns // 10**6}ms"


def _list(path: Path, node: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    given = node.get(key, []) if isinstance(node, dict) else None
    if not isinstance(given, list) or not all(isinstance(one, dict) and "topic_name" in one for one in given):
        remedy = "give a list of objects with topic_name"
        raise RtmeterError("is no list of topics", where=str(path), field=key, value=given, remedy=remedy)
    return given


def _name(path: Path, where: str, given: object) -> str:
    """As a stage may be called."""
    if not isinstance(given, str) or not given:
        raise RtmeterError("is no name", where=str(path), field=where, value=given, remedy="give a text")
    found = re.sub(r"\W", "_", given.strip("/"), flags=re.ASCII)
    return found if found[:1].isalpha() else f"n{found}"


def _autoware(path: Path, text: str, timing: Path | None) -> Foreign:
    """Sensors are sources, cyclic nodes sampled, fusions wait for both inputs, all others pass on at once."""
    found = Foreign(f"From {path.name}, a graph of the ROS 2 reference system")
    periods = _times(timing or path.parent / _DEFAULT_TIMING)
    topics: dict[str, str] = {}
    nodes = list(_nodes(text))
    for kind, keys in nodes:
        name = _name(path, "node_name", keys.get("node_name", "").strip('"'))
        topic: str = (keys.get("output_topic") or keys.get("topic_name") or "").strip('"')
        if topic in topics:
            message = "has two publishers: the stages of a chain have one each"
            raise _wrong(path, f"{name}.output_topic", topic, message, "name one of the topics anew")
        if topic:
            topics[topic] = name
        if kind not in _AUTOWARE_KINDS:
            remedy = f"give a graph of {', '.join(_AUTOWARE_KINDS)} nodes"
            raise _wrong(path, name, kind, "is a kind of node that is not known", remedy)
    for kind, keys in nodes:
        name = _name(path, "node_name", keys["node_name"].strip('"'))
        stage: dict[str, Any] = {}
        if inputs := [topics[topic] for topic in _heard(keys) if topic in topics]:
            stage["inputs"] = inputs
        elif kind not in ("Sensor", "Cyclic"):
            message = "is published by nobody: what hears nothing never sends anything"
            remedy = "leave this node out, and what hears only it; or give the node that publishes it"
            raise _wrong(path, f"{name}.input_topic", ", ".join(_heard(keys)), message, remedy)
        _pass_over_silent(found, name, _heard(keys), topics)
        if kind in ("Sensor", "Cyclic"):
            stage["period"] = _period(path, name, keys.get("cycle_time"), periods)
        if kind == "Cyclic":
            found.differs.append(f"{name} sends its newest inputs again where there are no newer ones")
        if kind == "Fusion":
            stage["fusion"] = True
        if "process" in keys:
            stage["process"] = keys["process"]
        if (
            "number_crunch_limit" in keys
            and "the nodes do no work (number_crunch_limit)" not in found.differs
        ):
            found.differs.append("the nodes do no work (number_crunch_limit)")
        found.add(path, name, stage)
    return found


def _nodes(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Kind and keys of each node; of an intersection, of each of its connections, named as its output."""
    for kind, body in _NODE.findall(text):
        keys: dict[str, str] = dict(_KEY.findall(body))
        if kind != "Intersection":
            yield kind, keys
            continue
        for connection in _CONNECTION.findall(body):
            own: dict[str, str] = dict(_KEY.findall(connection))
            yield (
                kind,
                own
                | {"node_name": own.get("output_topic", ""), "process": keys.get("node_name", "").strip('"')},
            )


def _heard(keys: Mapping[str, str]) -> list[str]:
    names = ("input_topic", "input_0", "input_1", "inputs")
    return [topic for name in names if name in keys for topic in re.findall(r"\"([^\"]*)\"", keys[name])]


def _times(path: Path) -> dict[str, str]:
    """Of the header's first struct."""
    first = _COMMENT.sub(lambda found: found[1] or " ", _text(path)).split("};", 1)[0]
    return {name: f"{count}{_UNITS[unit]}" for name, unit, count in _TIME.findall(first)}


def _period(path: Path, name: str, given: str | None, periods: Mapping[str, str]) -> str:
    constant = (given or "").rpartition("::")[2]
    period = periods.get(constant, "")
    if not period or period.rstrip("numsi") == "0":
        message = f"is no period: it is {period}" if period else "is no period that the timing header has"
        remedy = "give --timing, a header of the same version with a time above 0"
        raise _wrong(path, f"{name}.cycle_time", given, message, remedy)
    return period


def _quoted(name: str) -> str:
    """As YAML takes it for this text: no, on and null are texts only in quotes."""
    return name if yaml.safe_load(name) == name else f'"{name}"'


def _pass_over_silent(found: Foreign, name: str, heard: list[str], published: Container[str]) -> None:
    found.differs += [
        f"{name} does not hear {one}, which nobody publishes" for one in heard if one not in published
    ]


def _wait_for_none(path: Path, found: Foreign) -> None:
    """A fusion that was left with one input passes that on at once. Raises RtmeterError for what hears only
    what comes back to it."""
    for name, stage in found.stages.items():
        inputs = stage.get("inputs", [])
        if len(inputs) == 1 and stage.pop("fusion", False):
            found.differs.append(
                f"{name} passes on {inputs[0]} at once, where it would wait for the other input"
            )
        if not inputs and "period" not in stage:
            message, remedy = "hears only what comes back to it, and so never begins", "leave it out"
            raise _wrong(path, "name", name, message, remedy)


def _wrong(path: Path, field_name: str, value: object, message: str, remedy: str) -> RtmeterError:
    return RtmeterError(message, where=str(path), field=field_name, value=value, remedy=remedy)


def _open_circles(found: Foreign) -> None:
    """Leaves out the inputs by which what a stage sends comes back to it, in the order of the file."""
    hearers: dict[str, list[str]] = {name: [] for name in found.stages}
    for name, stage in found.stages.items():
        for one in stage.get("inputs", ()):
            hearers[one].append(name)
    done: set[str] = set()

    def closing(name: str, on_the_way: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        for hearer in hearers[name]:
            if hearer in (*on_the_way, name):
                yield hearer, name
            elif hearer not in done:
                yield from closing(hearer, (*on_the_way, name))
        done.add(name)

    sources = [name for name, stage in found.stages.items() if not stage.get("inputs")]
    for start in (*sources, *found.stages):
        if start in done:
            continue
        for hearer, name in list(closing(start, ())):
            left = [one for one in found.stages[hearer]["inputs"] if one != name]
            found.stages[hearer]["inputs"] = left
            if not left:
                del found.stages[hearer]["inputs"]
            found.differs.append(f"{hearer} does not hear {name}, which would close a circle")
