"""A second pair of eyes on a run of real-time probes, for the time that they leave the front no CPU."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, Self

from rtmeter.host.ending import affinities, put_back, reap
from rtmeter.host.root import Root

_LOOK_EVERY_S, _PATIENCE_S = 5, 20
_THROTTLING = "/proc/sys/kernel/sched_rt_runtime_us"
_HIGHEST = 99


class Guard:
    """The program (guarding.py) while the block runs, for a cell whose probes may take CPUs whole.

    It is above their priority only where the kernel leaves nothing to the others (real-time throttling is
    off); it sleeps, and keeps off the measured CPUs where there are others.
    """

    def __init__(self, config: Mapping[str, Any], root: Root = Root()) -> None:  # noqa: B008
        policies = [config[key] for key in ("scheduling", "child_threads") if config.get(key)]
        self._priority = max((int(policy.get("priority", 0)) for policy in policies), default=0)
        self._own = min(self._priority + 1, _HIGHEST) if root.read(_THROTTLING) == "-1" else 0
        self._avoid = ",".join(map(str, config.get("cpus") or ()))
        self._popen: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        if self._priority:
            self._cpus = affinities(os.getpid())
            words = (os.getpid(), self._own, self._avoid, _LOOK_EVERY_S, _PATIENCE_S)
            self._popen = subprocess.Popen(
                [sys.executable, "-m", "rtmeter.measure.probe.guarding", *map(str, words)],
                stdin=subprocess.PIPE,
                start_new_session=True,
            )
            assert self._popen.stdin is not None
            os.set_blocking(self._popen.stdin.fileno(), False)
        return self

    def __exit__(self, *_: object) -> None:
        if self._popen is not None and self._popen.stdin is not None:
            self._popen.kill()
            reap(self._popen)
            self._popen.stdin.close()
            if os.sched_getscheduler(os.getpid()) != os.SCHED_OTHER:  # it had helped, and will not look again
                put_back(os.getpid(), self._cpus)

    def watch(self, group: int) -> None:
        """A process group that is to end with this process."""
        self._say(b"+%d\n" % group)

    def beat(self) -> None:
        """This process gets on."""
        self._say(b".\n")

    def _say(self, words: bytes) -> None:
        if self._popen is not None and self._popen.stdin is not None:
            with contextlib.suppress(BlockingIOError, BrokenPipeError):  # it reads seldom, or was killed
                os.write(self._popen.stdin.fileno(), words)
