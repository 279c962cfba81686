"""Files of tools that tests make up, as the tools' source code writes them."""

from __future__ import annotations

import json

RTTEST = "iteration timestamp latency minor_pagefaults major_pagefaults"


def cyclictest(**changes: object) -> dict[str, object]:
    thread = {"histogram": {"10": 5, "12": 3}, "cycles": 9, "min": 10, "max": 700, "avg": 20.0}
    document = {"file_version": 1, "cmdline:": "cyclictest -h 100 -i 1000", "thread": {"0": thread}}
    for key, value in changes.items():
        (thread if key in thread else document)[key] = value
    return document


def jitterdebugger(**changes: object) -> str:
    cpu = {"histogram": {"3": 10, "7": 2}, "count": 13, "min": 3, "max": 1500, "avg": 5.0}
    document: dict = {
        "version": 3,
        "sysinfo": {"sysname": "Linux", "resolution_in_ns": 1000},
        "cpu": {"0": cpu},
    }
    for key, value in changes.items():
        (cpu if key in cpu else document)[key] = value
    return json.dumps(document)


TIMERLAT = """\
# RTLA timerlat histogram
# Time unit is microseconds (us)
# Duration:   0 00:00:05
Index   IRQ-000   Thr-000   IRQ-001   Thr-001
0            12         0        40         0
1           300         9       500         1
4             0       303         0       538
7             1         0         0         2
8             0         0         1         0
over:         0         2         0         0
count:      313       314       541       541
min:          0         1         0         1
avg:          1         5         1         4
max:          7       612         8         7
ALL:        IRQ       Thr
count:      854       855
min:          0         1
avg:          1         4
max:          8       612
"""


def hist2020(counts: dict[int, int]) -> str:
    return "latency,count\n" + "".join(f"{i},{counts.get(i, 0)}\n" for i in range(1000))


def log2014(bins: dict[int, int], loops: int, least: int, most: int) -> str:
    rows = "".join(f"{i:06} \t{bins.get(i, 0):06}\n" for i in range(most + 1))
    early = "".join(f"#-{i:06} \t{bins.get(-i, 0):06}\n" for i in range(1, -least + 1))
    return (
        "# Plot data for GnuPlot\n"
        f"# Timeout: 1000us, LoopLength: {loops}\n"
        f"# Measured:\t MIN: {least}us \tAVG: 44us \tMAX: {most}us\n"
        "# Reported:\t MIN: 30us \tAVG: 40us \tMAX: 99us\n"
        "# Difference:\t MIN: -9us \tAVG: 4us \tMAX: 7us\n"
        f"{rows}{'# negative Values following' + chr(10) + early if least < 0 else ''}\n"
    )


CSV = """\
Experiment id: 0b1c
Performance Test Version: 2.0.0
Publishing rate: 1000


---EXPERIMENT-START---
T_experiment,\tT_loop,\treceived,\tsent,\tlost,\trelative_loss,\tdata_received,\tlatency_min (ms),\
\tlatency_max (ms),\tlatency_mean (ms),\tlatency_variance (ms),\t
1.000000,\t\t1.000000,\t\t1000,\t\t1000,\t\t0,\t\t0.00,\t\t1024,\t\t0.05,\t\t0.9,\t\t0.1,\t\t1e-05,\t\t
2.000000,\t\t1.000000,\t\t998,\t\t1000,\t\t2,\t\t0.00,\t\t1024,\t\t0.05,\t\t1.7,\t\t0.1,\t\t1e-05,\t\t
Maximum runtime reached. Exiting.
"""


def rttest(latencies: list[object], period: int = 1_000_000) -> str:
    rows = [f"{i} {i * period} {latency} 0 0" for i, latency in enumerate(latencies)]
    return "\n".join(["iteration timestamp latency minor_pagefaults major_pagefaults", *rows, ""])
