"""Logs of ApexAI's performance_test: a row a second with counts and the smallest and largest latency.

The single latencies are not in it. A second whose largest latency is late has at least one late message.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rtmeter.importers.base import CUT, Imported, ImportedSeries, SourceFile
from rtmeter.model import Doubt
from rtmeter.statistics.counted_data import Intervals

START = "---EXPERIMENT-START---"
MS_NS, S_NS = 10**6, 10**9
_CSV = {"received": "received", "lost": "lost", "max": "latency_max", "min": "latency_min"}
_JSON = {
    "received": "num_samples_received",
    "lost": "num_samples_lost",
    "max": "latency_max",
    "min": "latency_min",
}


def read_csv(source: SourceFile) -> Imported:
    """The log that ``-l FILE`` or ``--logfile FILE.csv`` writes; latencies in milliseconds."""
    text = "\n".join(source.whole_lines)
    head, _, body = text.partition(START)
    lines = body.splitlines()
    offset = head.count("\n") + 1
    if len(lines) < 3:
        raise source.error("has no results", remedy=CUT)
    names = [name.strip() for name in lines[1].split(",")]
    columns = {key: _column(source, names, name, offset + 1) for key, name in _CSV.items()}
    unit = names[columns["max"]].partition("(")[2].rstrip(")") or "s"
    if unit not in ("ms", "s"):
        raise source.error("is a unit that is not known", field=names[columns["max"]], value=unit, remedy=CUT)
    elapsed, before = _column(source, names, "T_experiment", offset + 1), -math.inf
    rows = []
    for number, line in enumerate(lines[2:], offset + 2):
        words = [word.strip() for word in line.split(",")]
        if len(words) < len(names) - 1:
            if not line.strip() or line.startswith(("Maximum runtime", "Caught signal")):
                continue
            raise source.error("has too few columns", line=number, remedy=CUT)
        if len(words) - (words[-1] == "") > len(names) - (names[-1] == ""):  # it ends its rows with a comma
            remedy = "numbers with a comma in them stand in the wrong columns: measure with LC_ALL=C"
            raise source.error("has too many columns", line=number, remedy=remedy)
        if (now := source.number(words[elapsed], "T_experiment", number)) <= before:
            remedy, value = "the file was put together from two: import one run at a time", words[elapsed]
            raise source.error("does not rise", line=number, field="T_experiment", value=value, remedy=remedy)
        before = now
        rows.append((number, {key: words[at] for key, at in columns.items()}))
    facts = dict(line.split(":", 1) for line in head.splitlines() if ":" in line)
    stripped = {key.strip(): value.strip() for key, value in facts.items()}
    return _imported(source, rows, MS_NS if unit == "ms" else S_NS, stripped, unit)


def read_json(source: SourceFile) -> Imported:
    """The log that ``--logfile FILE.json`` writes; latencies in seconds."""
    document = source.json()
    results = document.get("analysis_results")
    if not isinstance(results, list):
        raise source.error("has no analysis_results", remedy=CUT)
    rows = []
    for index, result in enumerate(results):
        if not isinstance(result, dict) or not set(_JSON.values()) <= set(result):
            raise source.error("lacks counts or latencies", field=f"analysis_results[{index}]", remedy=CUT)
        rows.append((None, {key: result[name] for key, name in _JSON.items()}))
    facts = {key: str(value) for key, value in document.items() if key != "analysis_results"}
    return _imported(source, rows, S_NS, facts, None)


def _imported(
    source: SourceFile,
    rows: Sequence[tuple[int | None, Mapping[str, Any]]],
    unit_ns: int,
    facts: Mapping[str, str],
    unit: str | None,
) -> Imported:
    values = []
    for line, row in rows:
        received = source.count(row["received"], "received", line)
        most = source.time_ns(row["max"], unit_ns, "latency_max", line) if received else 0
        least = source.time_ns(row["min"], unit_ns, "latency_min", line) if received else 0
        if least > most:
            message = f"is larger than latency_max ({row['max']})"
            remedy = "units are mixed, or the file was edited"
            raise source.error(message, line=line, field="latency_min", value=row["min"], remedy=remedy)
        values.append((received, source.count(row["lost"], "lost", line), most))
    if not values:
        raise source.error("has no results", remedy=CUT)
    source.check_counted(sum(received + lost for received, lost, _ in values), "received and lost")
    received_each, lost_each, maxima = np.array(values, dtype=np.int64).T.copy()
    doubt = "only the largest latency of each second is in the file: of late messages at least one is known"
    return Imported(
        "performance_test",
        "latency from publisher to subscriber",
        (ImportedSeries("subscriber", intervals=Intervals(received_each, lost_each, maxima)),),
        verified=False,
        period_ns=_period_ns(source, facts.get("Publishing rate")),
        unit=unit,
        version=facts.get("Performance Test Version") or facts.get("perf_test_version"),
        facts=facts,
        doubts=(Doubt("intervals_only", doubt, "measure with rtmeter for every message's own"),),
    )


def _period_ns(source: SourceFile, rate: str | None) -> int | None:
    """From the rate in Hz; a rate of zero is as fast as possible."""
    hertz = 0.0 if rate is None else source.number(rate, "Publishing rate")
    return source.period_ns(S_NS / hertz, "Publishing rate", rate) if hertz else None


def _column(source: SourceFile, names: Sequence[str], wanted: str, line: int) -> int:
    for at, name in enumerate(names):
        if name.partition("(")[0].strip() == wanted:
            return at
    raise source.error(
        "is missing", line=line, field=wanted, remedy="the log is of another version or is cut"
    )
