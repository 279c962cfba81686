"""cell.json and run.json of version 1 as version 2 has them.

Version 1 grew: what was not yet written when a file was made is null or empty in it. Keys that version 1 had
from its first day are not made up: without them the file is damaged.
"""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

from rtmeter.model import HORIZON, Support
from rtmeter.results.record.summary import Statistics

_NULL = (
    *("server_config", "server_machine", "published", "imported", "second_topic", "path", "ticks"),
    *("clock_offset", "conditions", "findings", "server_findings", "judged_by"),
)
_MAPS = ("effective", "usage", "instrument", "counters", "grid", "adapter_facts", "machine", "clock")
_WITH_CPUS = (
    *("config", "server_config", "effective", "threads", "axes", "conditions"),
    *("findings", "server_findings"),
)
_AFFINITY = re.compile(r"^((?:child_|server_|irq_)?)affinity(?=$|\.)")
_OF_SUPPORT = {"design_effect": 1.0, "effective_n": 0.0, "growth": "unknown", "causes": [], "findings": []}


def cell_of_version_1(old: dict[str, Any]) -> dict[str, Any]:
    """Does not change ``old``."""
    new = dict.fromkeys(_NULL) | {"hosts": {}} | old | {"version": 2}
    new |= {key: _renamed(new[key]) for key in _WITH_CPUS if key in new}
    new |= {key: {} for key in (*_MAPS, "threads", "axes") if key in old and old[key] is None}
    _fill(new, "threads", {"client": [], "server": []})
    _fill(new, "config", {"warm_up": 0, "period_ns": None})
    _fill(new, "conditions", {"asked": {}, "effective": {}, "achieved": {}})
    _fill(new, "error", dict.fromkeys(("field", "value", "remedy", "where")))
    _fill(new, "requirement", {"criticality": "firm", "horizon": HORIZON})
    _fill(new, "imported", dict.fromkeys(("version", "unit", "period_from")))
    for key in ("findings", "server_findings"):
        new[key] = _each(new[key], {"why": "", "source": "", "fix": "", "items": []}, at_worst="grade")
    if "warnings" in old:
        new["warnings"] = _each(old["warnings"], {"hint": ""})
    if isinstance(old.get("published"), list):
        new["published"] = [_published(one) for one in old["published"]]
    if isinstance(old.get("verdict"), dict):
        new["verdict"] = _verdict(old["verdict"])
    if isinstance(old.get("summary"), dict):
        new["summary"] = _summary(old["summary"])
    return new


def _renamed(found: Any) -> Any:
    """With the word that CPUs are chosen by now: ``cpus``, ``child_cpus``, ``irq_cpus.eth0``."""
    if isinstance(found, list):
        return [_renamed(one) for one in found]
    if not isinstance(found, dict):
        return found
    return {_AFFINITY.sub(r"\1cpus", key): _renamed(one) for key, one in found.items()}


def run_of_version_1(old: dict[str, Any]) -> dict[str, Any]:
    """Does not change ``old``."""
    lacking = {"description": "", "host": None, "ended": None, "scale": 1.0, "rtmeter": ""}
    return lacking | old | {"version": 2}


def _fill(content: dict[str, Any], key: str, defaults: dict[str, Any]) -> None:
    """Puts defaults below what the key has, if that is a map."""
    if isinstance(content.get(key), dict):
        content[key] = defaults | content[key]


def _each(found: Any, defaults: dict[str, Any], at_worst: str | None = None) -> Any:
    if not isinstance(found, list):
        return found
    return [
        defaults | ({"at_worst": one.get(at_worst)} if at_worst else {}) | one
        if isinstance(one, dict)
        else one
        for one in found
    ]


def _published(found: Any) -> Any:
    if not isinstance(found, dict):
        return found
    empty: dict[str, Any] = {"tables": [], "also": [], "not_comparable": {}, "conditions": [], "notes": []}
    return empty | found | {"conditions": _each(found.get("conditions", []), {"where": {}})}


def _verdict(found: dict[str, Any]) -> dict[str, Any]:
    late = {"unserved": 0, "more_runs": None}
    new = {"more_samples": None, "support": None, "misses_between": None} | late | found
    _fill(new, "requirement", {"criticality": "firm", "horizon": HORIZON})
    _fill(new, "support", dict.fromkeys(field.name for field in fields(Support)) | _OF_SUPPORT)
    return new


def _summary(found: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(found.get("quantities"), dict):
        return found
    nothing = dict.fromkeys(name for name in Statistics.model_fields if name != "n")
    quantities = {}
    for name, views in found["quantities"].items():
        if not isinstance(views, dict):
            return found
        known = dict.fromkeys(("per_release", "as_served", "corrected")) | views
        quantities[name] = {
            view: nothing | statistics if isinstance(statistics, dict) else statistics
            for view, statistics in known.items()
        }
    return found | {"quantities": quantities}
