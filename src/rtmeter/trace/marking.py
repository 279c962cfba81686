"""Events of a program's own functions → marks."""

from __future__ import annotations

from collections.abc import Callable

from rtmeter.explain.marks import Mark
from rtmeter.trace.formats import Format
from rtmeter.trace.rcl import what_of


def marking(form: Format, marks: list[Mark]) -> Callable[[int, int, bytes, int], None]:
    """Takes time, CPU, page and offset of an event, and adds what it tells."""
    what, tid = what_of(form.name), form.field("common_pid").read
    reads = {
        name: form.text_field(name) if f"__data_loc char[] {name};" in form.text else form.field(name).read
        for name in form.fields
        if not name.startswith(("common_", "__probe"))
    }

    def handle(time_ns: int, cpu: int, page: bytes, at: int) -> None:
        del cpu
        values = {name: read(page, at) for name, read in reads.items()}
        marks.append(Mark(time_ns, tid(page, at), what, values))

    return handle
