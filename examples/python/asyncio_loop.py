"""A periodic task of asyncio, recorded: asyncio_loop.py FOLDER RELEASES"""

from __future__ import annotations

import asyncio
import sys

from rtmeter.loop import Loop

PERIOD_S = 0.01


async def control(folder: str, releases: int) -> int:
    """Runs the task; returns how many releases were late."""
    late: list[int] = []
    clock = asyncio.get_running_loop()
    with Loop(
        "asyncio-task",
        "10ms",
        folder=folder,
        miss_ratio=0.5,  # of an example on any machine; yours is stricter
        warm_up="50ms",
        on_late=lambda k, release_ns, stamp_ns: late.append(k),
    ) as loop:
        due = clock.time()  # that of time.monotonic()
        for _ in range(releases):
            due += PERIOD_S
            await asyncio.sleep(due - clock.time())
            loop.wake(round(due * 1e9))
            sum(range(1000))  # the work
            loop.done()
    return len(late)


if __name__ == "__main__":
    print(asyncio.run(control(sys.argv[1], int(sys.argv[2]))), "late")
