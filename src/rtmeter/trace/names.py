"""The names of threads, as the pages have them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from rtmeter.explain.threads import is_kernels
from rtmeter.trace.formats import Field, ReadField


def name_reader(
    field: Field, tid: ReadField, kernel_threads: Mapping[int, Collection[str]]
) -> Callable[[bytes, int], str]:
    """Reads the name of the thread whose id ``tid`` reads; in brackets if it is the kernel's, as the idle
    ones are, and only then."""
    names: dict[tuple[bytes, int], str] = {}

    def read(page: bytes, at: int) -> str:
        raw = page[at + field.offset : at + field.offset + field.size].partition(b"\0")[0]
        one = tid(page, at)
        key = (raw, one if one in kernel_threads else min(one, 1))
        if key not in names:
            text = raw.decode(errors="backslashreplace")
            names[key] = (
                f"[{text}]"
                if one == 0 or any(name.startswith(text) for name in kernel_threads.get(one, ()))
                else f"{text} (user)"
                if is_kernels(text)
                else text
            )
        return names[key]

    return read
