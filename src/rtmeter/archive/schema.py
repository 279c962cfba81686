"""The tables of an archive (spec/archive.md) and their version."""

from __future__ import annotations

import json

import pyarrow as pa

from rtmeter.errors import RtmeterError
from rtmeter.values import from_json

FORMAT, VERSION = "rtmeter-archive", 1

CELLS, DISTRIBUTIONS, MAXIMA, CAUSES, FINDINGS = "cells", "distributions", "maxima", "causes", "findings"
SAMPLES, SAMPLED = "samples", "sampled"
COMPLETED = "completed"

_TIME = pa.timestamp("us", "UTC")
_KEY = [("cell", pa.string()), ("batch", pa.string()), ("measured", _TIME), ("rig", pa.string())]
_TEXTS_OF_CELL = (
    *("clock", "machine_id", "boot_id", "hostname", "campaign", "name", "id", "status", "measurement"),
    *("mode", "adapter", "server_adapter", "quantity", "kernel", "kernel_version", "firmware", "cpu_model"),
    *("virtual_machine", "middleware", "middleware_version", "rtmeter", "scheduling", "settings"),
    *("criticality", "outcome", "reason", "refused", "drive", "components", "rmw", "rmw_library"),
    *("server_kernel", "server_kernel_version", "server_firmware"),
    *("server_middleware", "server_middleware_version"),
)
_COUNTS_OF_CELL = (
    *("repeat", "period_ns", "timeout_ns", "payload_bytes", "deadline_ns", "n", "misses", "late", "skipped"),
    *("lost", "min_ns", "p50_ns", "p90_ns", "p99_ns", "p99_9_ns", "p99_99_ns", "p99_999_ns", "max_ns"),
    *("max_at_k", "bins", "blocks", "causes", "findings"),
)
STAMPS = (
    *("release_ns", "wake_ns", "free_ns", "callback_ns", "reported_expected_ns", "reported_actual_ns"),
    *("armed_before_ns", "armed_after_ns", "sent_ns", "received_ns", "server_received_ns", "server_sent_ns"),
    *("kernel_sent_ns", "kernel_received_ns", "server_kernel_received_ns", "server_kernel_sent_ns"),
    *("accepted_ns", "first_feedback_ns", "start_ns", "request_sent_ns", "request_received_ns"),
    *("response_sent_ns", "response_received_ns", "before_ns", "arrived_ns", "output_ns", "started_ns"),
    *("matched_ns", "first_ns", "done_ns", "busy_ns", "interval_ns", "latency_ns"),
)
"""The columns of all samples.parquet (spec/results.md), but for ``by_timer`` and ``tid`` of attached loops,
which are no stamps and left out."""

_REALS_OF_CELL = ("miss_ratio", "confidence", "horizon", "design_effect", "upper")
_TYPES_OF_CELL = [
    *((name, pa.string()) for name in _TEXTS_OF_CELL),
    *((name, pa.int64()) for name in _COUNTS_OF_CELL),
    *((name, pa.float64()) for name in _REALS_OF_CELL),
]

_AS_ADDED = ("clock", "n", "min_ns", "max_ns", "max_at_k", "bins", "blocks", "findings")
"""Columns of ``cells`` that depend on when it was added, or that must be what other tables say."""

COMPLETABLE = tuple(name for name, _ in _TYPES_OF_CELL if name not in _AS_ADDED)
"""Columns of ``cells`` that are told later, where they were null, if the same results tell them."""

VERDICT = (
    *("deadline_ns", "miss_ratio", "confidence", "horizon", "criticality", "outcome", "reason", "refused"),
    *("misses", "late", "skipped", "lost", "design_effect", "upper"),
)
"""Those of COMPLETABLE that go together: what was required, and what came of it."""

SCHEMAS: dict[str, pa.Schema] = {
    DISTRIBUTIONS: pa.schema(
        [
            *_KEY,
            *((name, pa.int64()) for name in ("n", "lost", "min_ns", "max_ns", "max_at_k")),
            ("counts", pa.list_(pa.struct([("bin", pa.int32()), ("count", pa.int64())]))),
        ]
    ),
    MAXIMA: pa.schema(
        [*_KEY, *((name, pa.int64()) for name in ("block", "n", "lost", "max_ns", "max_at_k"))]
    ),
    CAUSES: pa.schema(
        [
            *_KEY,
            *((name, pa.string()) for name in ("category", "who", "ended_by", "relation")),
            *((name, pa.int64()) for name in ("releases", "lateness_ns")),
        ]
    ),
    FINDINGS: pa.schema([*_KEY, *((name, pa.string()) for name in ("source", "finding", "grade", "value"))]),
    SAMPLES: pa.schema(
        [
            *_KEY,
            ("taken", _TIME),
            ("k", pa.int64()),
            ("status", pa.string()),
            *((name, pa.bool_()) for name in ("warm_up", "late", "for_good")),
            *((name, pa.int64()) for name in STAMPS),
        ]
    ),
    SAMPLED: pa.schema(
        [*_KEY, ("taken", _TIME), *((name, pa.int64()) for name in ("samples", "for_good", "late"))]
    ),
    COMPLETED: pa.schema(
        [*_KEY, ("added", _TIME), *(column for column in _TYPES_OF_CELL if column[0] in COMPLETABLE)]
    ),
    CELLS: pa.schema(
        [
            *_KEY,
            ("added", _TIME),
            ("started", _TIME),
            ("ended", _TIME),
            ("labels", pa.map_(pa.string(), pa.string())),
            ("valid", pa.bool_()),
            *_TYPES_OF_CELL,
        ]
    ),
}
"""The columns of each table. The cells come last: they are made last, and a cell is there when its row is."""

OF_SAMPLES = (SAMPLED, SAMPLES)
"""Tables that an archive has since samples can be taken along: an older one lacks both."""

LATER = (COMPLETED, *OF_SAMPLES)
"""Tables that an older archive may lack."""

CHILDREN = tuple(name for name in SCHEMAS if name not in (CELLS, *LATER))

OWNERS = {**dict.fromkeys(CHILDREN, (CELLS,)), CAUSES: (CELLS, COMPLETED), SAMPLES: (SAMPLED,)}
"""A row of the tables on the left counts if one of those on the right has the same cell and batch."""


def described() -> str:
    """What a table says of itself."""
    return json.dumps({"format": FORMAT, "version": VERSION})


def version_of(description: str | None, where: str) -> int:
    """The version that a table says it has. Raises RtmeterError if it is none of ours, or a newer one."""
    try:
        about = from_json(description or "")
        if about["format"] != FORMAT or not isinstance(about["version"], int):
            raise ValueError
    except (ValueError, TypeError, KeyError):
        remedy = "give the place of an archive, or an empty one to make it in"
        raise RtmeterError(
            "is a Delta table, but of no archive of rtmeter", where=where, remedy=remedy
        ) from None
    if about["version"] > VERSION:
        message = f"is an archive of version {about['version']}, and this rtmeter knows {VERSION}"
        raise RtmeterError(message, where=where, remedy="update rtmeter; nothing was changed")
    return int(about["version"])
