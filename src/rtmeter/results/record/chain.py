"""What became of the samples of a chain, path by path."""

from __future__ import annotations

from rtmeter.results.record.parts import RecordPart
from rtmeter.results.record.summary import Statistics


class ChainPath(RecordPart):
    """One path: its stages, from the source on; ``counts`` of its samples and the ``identity`` they hold;
    ``data_age`` of every output, ``reaction`` of every sample, as measurements define them."""

    stages: list[str]
    counts: dict[str, int]
    identity: str
    data_age: Statistics
    reaction: Statistics


class Chain(RecordPart):
    """Every path from a source to a stage that nobody hears; which of them is ``judged``."""

    judged: list[str]
    processes: dict[str, list[str]]
    paths: list[ChainPath]
