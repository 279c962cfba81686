"""What the tests of the ROS 1 adapter share."""

from __future__ import annotations

from probe_runs import LONG, MS, Config

PERIOD = 2 * MS
ENVIRONMENT = {"ROS_MASTER_URI": "", "ROS_LOG_DIR": "/tmp"}  # no log folder is made at home
ROS1: Config = {"adapter": "ros1", "period_ns": PERIOD, "environment": ENVIRONMENT}
CYCLE: Config = ROS1 | {"measurement": "cycle", "loss_timeout_ns": LONG}


def master_of(facts: dict[str, dict[str, str]]) -> tuple[str, int]:
    """How the run came to its master, and the master's process."""
    how, _, rest = facts["adapter"]["master"].partition(", ")
    return how, int(rest.rpartition("(process ")[2].rstrip(")"))


def at(uri: str) -> Config:
    return {"environment": ENVIRONMENT | {"ROS_MASTER_URI": uri}}
