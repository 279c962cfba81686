"""The page of a fleet: rigs by verdict, what changed and when, distributions by kernel and middleware."""

from __future__ import annotations

from pathlib import Path

from rtmeter.archive.engine import answering
from rtmeter.archive.groups import (
    PERCENTS,
    GroupsAsked,
    between,
    merged,
    without_in_words,
)
from rtmeter.archive.query import RIGS, selecting
from rtmeter.archive.tables import Archive
from rtmeter.archive.trend import trend
from rtmeter.errors import RtmeterError
from rtmeter.host.files import replace_file
from rtmeter.report.page import environment

_BY = {
    "kernel": ("kernel",),
    "middleware": ("adapter", "middleware", "middleware_version", "rmw", "rmw_library"),
}


def write(archive: Archive, out: Path) -> Path:
    """Writes index.html of the archive into the folder; returns it. Raises RtmeterError if it cannot be."""
    archive.open()
    with selecting(archive, RIGS) as answer:
        rigs = answer.read_all().to_pylist()
    with answering(archive) as backend:
        found = trend(backend, GroupsAsked())
        distributions = [(title, merged(backend, GroupsAsked(by))) for title, by in _BY.items()]
    changes = [
        {
            "when": min(change.when for change in cause.changes),
            "words": cause.in_words("p99.9"),
            "rigs": cause.rigs,
        }
        for cause in found.causes()
    ]
    changes.sort(key=lambda one: str(one["when"]), reverse=True)
    text = environment().get_template("fleet.html")
    page = text.render(
        title=f"Fleet, {archive.url}",
        rigs=rigs,
        rows=len(rigs) + len(changes) + sum(len(groups) for _, groups in distributions),
        series=found.series,
        left_out=found.left_out("p99.9"),
        without_in_words=without_in_words,
        changes=changes,
        distributions=distributions,
        percents=PERCENTS,
        between=between,
    )
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"cannot be made: {error.strerror}"
        raise RtmeterError(message, field="-o", value=str(out), remedy="choose another folder") from None
    replace_file(out / "index.html", page.encode())
    return out / "index.html"
