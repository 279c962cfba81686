"""Which tests run beside which: what shares a daemon or a part of the machine runs one after another."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

ALONE = {
    "boards",
    "kernel",
    "test_selftest",
    "test_selftest_explain",
    "test_settings_real",
    "test_thread_waits",
}
"""Folders and files whose tests stop other processes, take CPUs from them or count what runs beside."""

TOGETHER = {
    "iox-roudi": {
        "test_check_iceoryx",
        "test_cyclonedds",
        "test_iceoryx",
        "test_iceoryx_large",
        "test_second_topic",
    },
    "settings": {
        "test_campaigns",
        "test_check",
        "test_explain",
        "test_kills",
        "test_network_settings",
        "test_restore",
    }
    | {"test_undo_kills"},
}
"""By what they share: iceoryx's daemon, of which a machine has one; what rtmeter sets of a machine."""

LONG = {
    "test_archive_object_store",
    "test_check_adapter",
    "test_discovery_run",
    "test_iceoryx",
    "test_mutilated_records",
    "test_packaging",
    "test_posix",
    "test_rclpy",
    "test_supervise",
}
"""Files of a minute or so: begun first, so that none of them is last and alone."""

ORDER = "RTMETER_ORDER"
"""An environment variable: a seed for the order of the files."""


def group_of(path: Path) -> str:
    """The files of one group run on one worker, one after another; most are a group of their own."""
    return next((name for name, files in TOGETHER.items() if path.stem in files), str(path))


def is_alone(path: Path) -> bool:
    return bool({path.parent.name, path.stem} & ALONE)


def arrange(items: list[pytest.Item]) -> None:
    """Long files first, or in the order that RTMETER_ORDER stands for; a file's tests stay together, in
    theirs."""
    seed = os.environ.get(ORDER)
    if not seed:
        items.sort(key=lambda item: item.path.stem not in LONG)
    else:
        files = list(dict.fromkeys(item.path for item in items))
        random.Random(seed).shuffle(files)
        place = {file: number for number, file in enumerate(files)}
        items.sort(key=lambda item: place[item.path])


def scheduler(config: pytest.Config, log: Any) -> Any:
    """Of pytest-xdist, where it would schedule by file: by group instead."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class ByGroup(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(Path(nodeid.split("::", 1)[0]))

    return ByGroup(config, log)
