"""What a campaign will start and change, said before it runs: it may be somebody else's."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rtmeter.measure.cell import source_of
from rtmeter.model import LOCAL, TARGET
from rtmeter.results.condition_words import in_words
from rtmeter.values import Scheduling, format_cpus, visible

if TYPE_CHECKING:
    from rtmeter.model import Campaign, Cell


def announce(campaign: Campaign) -> None:
    """Says it on standard error."""
    for line in lines(campaign):
        print(f"rtmeter: {line}", file=sys.stderr)


def lines(campaign: Campaign) -> Iterator[str]:
    """A line for each kind of thing, with everything that any cell asks for."""
    cells = campaign.cells
    yield visible(f"{campaign.name}: {len(cells):,} cells")
    for kind, found in (
        ("starts", (name for cell in cells for name in _programs(cell))),
        ("acquires with labgrid-client", (cell.rig.place for cell in cells if cell.rig and cell.rig.place)),
        ("logs in", (host for cell in cells for host in cell.hosts.values() if host != LOCAL)),
        ("asks of this machine", _asked_of(cells, target=False)),
        ("asks of the target", _asked_of(cells, target=True)),
        (
            "asks of the server's machine",
            (words for cell in cells for words in _asked(cell.conditions.get("server", {}))),
        ),
        ("real-time", (words for cell in cells for words in _real_time(cell))),
        ("options of the middleware", (words for cell in cells for words in _options(cell))),
    ):
        if distinct := dict.fromkeys(found):
            yield visible(f"  {kind}: {', '.join(distinct)}")


def _asked_of(cells: Iterable[Cell], *, target: bool) -> Iterator[str]:
    chosen = (cell for cell in cells if (TARGET in cell.hosts) == target)
    return (words for cell in chosen for words in _asked(cell.conditions))


def _programs(cell: Cell) -> Iterator[str]:
    yield from source_of(cell).programs
    for conditions in (cell.conditions, cell.conditions.get("server", {})):
        yield from (
            name for key, name in (("load", "stress-ng"), ("traffic", "iperf3")) if conditions.get(key)
        )


def _asked(conditions: Mapping[str, Any]) -> Iterable[str]:
    return in_words({"asked": conditions})


def _real_time(cell: Cell) -> Iterator[str]:
    config = cell.config
    for key in ("scheduling", "child_threads"):
        if isinstance(given := config.get(key), Mapping):
            scheduling = Scheduling.from_probe(given)
            if scheduling.policy not in ("other", "None"):
                cpus = f" on CPUs {format_cpus(config['cpus'])}" if config.get("cpus") else ""
                level = f":{scheduling.priority}" if scheduling.priority else ""
                yield f"{scheduling.policy}{level}{cpus}"
    if config.get("lock_memory"):
        yield "locked memory"


def _options(cell: Cell) -> Iterator[str]:
    for options in (cell.config.get("options"), cell.server_options):
        yield from (f"{name}={value}" for name, value in (options or {}).items())
