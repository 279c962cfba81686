"""cell.json and run.json (spec/results.md) → records, and back: one model of each for all of them."""

from rtmeter.results.record.beside import NodeSeen, PublisherSeen, SubscriberSeen, WasBeside
from rtmeter.results.record.cell import CellRecord
from rtmeter.results.record.parts import (
    Failure,
    JudgedBy,
    MachineFinding,
    Provenance,
    RigOfCell,
    RigOfRun,
    Threads,
)
from rtmeter.results.record.reading import read_cell_file, read_run_file, text_of
from rtmeter.results.record.run import RunRecord
from rtmeter.results.record.summary import Statistics, Summary, Views

__all__ = [
    "CellRecord",
    "Failure",
    "JudgedBy",
    "MachineFinding",
    "NodeSeen",
    "Provenance",
    "PublisherSeen",
    "RigOfCell",
    "RigOfRun",
    "RunRecord",
    "Statistics",
    "SubscriberSeen",
    "Summary",
    "Threads",
    "Views",
    "WasBeside",
    "read_cell_file",
    "read_run_file",
    "text_of",
]
