"""What the tests of the adapter ros2 share: they need a ROS 2 that is sourced, and say so where none is."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from probe_runs import LONG, MS, Config

from rtmeter.measure.probe.probes import describe, find_probes

_PREFIXES = [Path(p) for p in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if p]
_PROBE = find_probes().get("ros2") if _PREFIXES else None

needs_ros2 = pytest.mark.skipif(
    _PROBE is None, reason="no ROS 2 is sourced, or the adapter ros2 is not built with it"
)

_INDEX = "share/ament_index/resource_index/rmw_typesupport"
RMWS = sorted({path.name for prefix in _PREFIXES for path in (prefix / _INDEX).glob("rmw_*_cpp")})
"""The RMWs installed here."""
RMWS_OF_RCL = RMWS or sorted(path.name for path in Path(sys.prefix, _INDEX).glob("rmw_*_cpp"))
"""Those of PyPI's packages, where no ROS 2 is sourced."""
_FACTS = describe("ros2", _PROBE).facts if _PROBE else {}
OPTIONS = _FACTS.get("option", {})
INTERFACES = _FACTS.get("interfaces", [])
"""What requests go over here: actions where the adapter is built with an rclcpp_action."""
HAS_TLSF = "|tlsf|" in OPTIONS.get("allocator", "")
EXECUTORS = OPTIONS.get("executor", "single_threaded").partition(":")[0].split("|")

PERIOD = 2 * MS
ROS2: Config = {"adapter": "ros2", "period_ns": PERIOD}
CYCLE: Config = ROS2 | {"measurement": "cycle", "loss_timeout_ns": LONG}


def library(name: str) -> Path:
    """A library of the ROS 2 that is sourced."""
    folders = [Path(p) for p in os.environ["LD_LIBRARY_PATH"].split(os.pathsep) if p]
    return next(folder / name for folder in folders if (folder / name).exists())


def with_rmw(name: str) -> Config:
    return {"environment": {"RMW_IMPLEMENTATION": name}}


def with_options(**options: str) -> Config:
    return {"options": options}
