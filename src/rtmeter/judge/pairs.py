"""Which cells of A and B belong together: by id, else by their axes; their repeats by number."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass

from rtmeter.results.cells import StoredCell

Repeats = Mapping[int, StoredCell]
"""A cell's repeats by their number."""


@dataclass(frozen=True, slots=True)
class Pairing:
    """A cell of A and one of B, with the repeats that both have, in pairs; ``left_out`` says which have
    no partner or no data."""

    a: str
    b: str
    pairs: tuple[tuple[StoredCell, StoredCell], ...]
    left_out: tuple[str, ...]

    @property
    def name(self) -> str:
        """Its id, or both if they differ."""
        return self.a if self.a == self.b else f"{self.a} → {self.b}"

    @property
    def interleaved(self) -> bool:
        """Whether A and B were measured in turn, so that a machine that changes changes for both."""
        starts = [[str(pair[side].record.started) for pair in self.pairs] for side in (0, 1)]
        return len(self.pairs) > 1 and max(starts[0]) >= min(starts[1]) and max(starts[1]) >= min(starts[0])


def pair_up(a: Mapping[str, Repeats], b: Mapping[str, Repeats]) -> tuple[list[Pairing], list[str], list[str]]:
    """The pairs, and the cells that only A and only B has; one cell each is a pair whatever it is."""
    if len(a) == len(b) == 1:
        return [pairing(*next(iter(a.items())), *next(iter(b.items())))], [], []
    partners = {name: name for name in a if name in b}
    rest = [{n: cells[n] for n in cells if n not in partners} for cells in (a, b)]
    of_a, of_b = (unique(cells, _axes) for cells in rest)
    partners |= {of_a[key]: of_b[key] for key in of_a if key in of_b}
    pairs = [pairing(name, a[name], partners[name], b[partners[name]]) for name in a if name in partners]
    taken = set(partners.values())
    return pairs, [name for name in a if name not in partners], [name for name in b if name not in taken]


def pairing(a_name: str, a: Repeats, b_name: str, b: Repeats) -> Pairing:
    """The repeats of one cell with those of another; one of each are a pair whatever their numbers."""
    if len(a) == len(b) == 1:
        a, b = (dict(enumerate(repeats.values(), 1)) for repeats in (a, b))
    pairs, left_out = [], []
    for number in sorted({*a, *b}):
        both = [cells[number] for cells in (a, b) if number in cells]
        unusable = [f"{cell.folder} {cell.record.why_unusable}" for cell in both if not cell.record.usable]
        if len(both) < 2:
            left_out.append(f"{both[0].folder} has no partner")
        elif unusable:
            left_out += unusable
        else:
            pairs.append((both[0], both[1]))
    return Pairing(a_name, b_name, tuple(pairs), tuple(left_out))


def unique(cells: Mapping[str, Repeats], key_of: Callable[[StoredCell], Hashable]) -> dict[Hashable, str]:
    """Names of the cells by a key, those left out that share theirs."""
    keys = {name: key_of(_first(repeats.values())) for name, repeats in cells.items()}
    shared = list(keys.values())
    return {key: name for name, key in keys.items() if shared.count(key) == 1}


def _first(cells: Iterable[StoredCell]) -> StoredCell:
    return next(iter(cells))


def _axes(cell: StoredCell) -> Hashable:
    record = cell.record
    axes = {name: str(value) for name, value in record.axes.items() if name != "repeat"}
    return record.measurement, record.mode, tuple(sorted(axes.items()))
