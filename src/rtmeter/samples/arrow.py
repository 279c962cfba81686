"""NumPy's arrays as Arrow's, without ``pa.array``: that imports pandas where it is installed, which takes a
quarter of a short run's processor time, and 40 MB in the middle of a long one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def array(kind: pa.DataType, values: NDArray[Any], absent: NDArray[np.bool_] | None = None) -> pa.Array[Any]:
    """Of values as wide as the kind's, not copied where they lie side by side; null where ``absent``."""
    present = None if absent is None or not absent.any() else pa.py_buffer(_packed(~absent))
    return pa.Array.from_buffers(kind, len(values), [present, pa.py_buffer(np.ascontiguousarray(values))])


def bits(values: NDArray[np.bool_]) -> pa.Array[Any]:
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(_packed(values))])


def strings(values: Sequence[str]) -> pa.Array[Any]:
    encoded = [value.encode() for value in values]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    data = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(values), data)


def _packed(values: NDArray[np.bool_]) -> NDArray[np.uint8]:
    return np.packbits(values, bitorder="little")


def check_columns(schema: pa.Schema, wanted: Mapping[str, pa.DataType]) -> None:
    """Raises ValueError for the first of these columns that is not there, or is of another type."""
    for name, kind in wanted.items():
        if (place := schema.get_field_index(name)) < 0:
            raise ValueError(f"it has no column {name}")
        if schema.field(place).type != kind:
            raise ValueError(f"{name} is of type {schema.field(place).type}, not {kind}")
