"""Which machine results are of: two of one host name are told apart by their ids (rtmeter.host.identity).

Where an id is not known, as of older results, the host name decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rtmeter.host.identity import SHORT

SeenMachine = tuple[str, str | None]
"""The name of its folder or host, and its id."""


def names_of(machines: Iterable[SeenMachine]) -> Mapping[SeenMachine, str]:
    """What each machine is called among these: its name, and the first digits of its id where several ids
    have that name."""
    known = set(machines)
    ids: dict[str, set[str]] = {}
    for name, own in known:
        ids.setdefault(name, set()).update([own] if own else [])
    return {
        (name, own): f"{name} ({own[:SHORT]})" if own and len(ids[name]) > 1 else name for name, own in known
    }
