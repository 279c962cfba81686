"""What a SELECT found, as text, JSON or a file; a batch of rows at a time where that is possible."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rtmeter.errors import RtmeterError
from rtmeter.host.files import whole_file
from rtmeter.values import as_json, harmless

if TYPE_CHECKING:
    import pyarrow as pa

_FORMATS = (".parquet", ".csv")


def shown_as(csv: bool, out: Path | None, as_json: bool) -> Callable[[pa.RecordBatchReader], None]:
    """What shows an answer as the options ask; raises RtmeterError if they contradict each other."""
    given = [name for name, is_given in (("--csv", csv), ("-o", out), ("--json", as_json)) if is_given]
    if len(given) > 1:
        raise RtmeterError(f"contradicts {given[1]}", field=given[0], remedy="give one of the two")
    if out is not None:
        return partial(_write_and_name, out)
    return print_csv if csv else _print_json if as_json else print_rows


def _write_and_name(out: Path, answer: pa.RecordBatchReader) -> None:
    write_answer(answer, out)
    print(out)


def _print_json(answer: pa.RecordBatchReader) -> None:
    from rtmeter.cli.output import print_json

    print_json(rows_json(answer))


def print_rows(answer: pa.RecordBatchReader) -> None:
    """A table of all rows; no value is cut."""
    from rich import box
    from rich.table import Table

    from rtmeter.cli.columns import print_table
    from rtmeter.cli.output import console

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for field in answer.schema:
        number = _is_number(field.type)
        table.add_column(
            harmless(field.name), justify="right" if number else "left", no_wrap=number, overflow="fold"
        )
    for row in _rows(answer):
        table.add_row(*(_text(value) for value in row))
    print_table(console(), table)


def _is_number(kind: pa.DataType) -> bool:
    import pyarrow.types as kinds

    return bool(kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind))


def _text(value: object) -> str:
    value = _plain(value)
    if value is None:
        return "-"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(harmless(str(value)))


def _rows(answer: pa.RecordBatchReader) -> Any:
    for batch in answer:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def rows_json(answer: pa.RecordBatchReader) -> dict[str, Any]:
    """``columns``, and ``rows`` as objects; what JSON has no type for as text. Raises RtmeterError if two
    columns have one name, of which an object would keep the last."""
    names = answer.schema.names
    if twice := [name for place, name in enumerate(names) if name in names[:place]]:
        remedy = f"give one of them another name: … AS other_{twice[0]}"
        raise RtmeterError("two columns have one name", field="SELECT", value=twice[0], remedy=remedy)
    rows = [dict(zip(names, map(_plain, row), strict=True)) for row in _rows(answer)]
    return {"columns": names, "rows": rows}


def _plain(value: Any) -> Any:
    """The value as JSON has it: sums, which DuckDB takes with 38 digits, as numbers; what it has no type for,
    as times, as text."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    return value if value is None or isinstance(value, int | float | str) else str(value)


def print_csv(answer: pa.RecordBatchReader) -> None:
    """With a header; nothing where there is no value."""
    import pyarrow.csv

    sys.stdout.flush()
    plain = _flat(answer)
    with pyarrow.csv.CSVWriter(sys.stdout.buffer, plain.schema) as writer:
        for batch in plain:
            writer.write_batch(batch)


def _flat(answer: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """With lists, maps and structures as JSON, which CSV has no form for."""
    import pyarrow as pa

    nested = [place for place, kind in enumerate(answer.schema.types) if pa.types.is_nested(kind)]
    if not nested:
        return answer
    schema = answer.schema
    for place in nested:
        schema = schema.set(place, pa.field(schema.names[place], pa.string()))

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in answer:
            columns = list(batch.columns)
            for place in nested:
                texts = [None if one is None else _json_text(one) for one in columns[place].to_pylist()]
                columns[place] = pa.array(texts, pa.string())
            yield pa.record_batch(columns, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _json_text(value: object) -> str:
    """The value as one line of JSON."""
    return json.dumps(as_json(_plain(value)), ensure_ascii=False)


def write_answer(answer: pa.RecordBatchReader, out: Path) -> None:
    """Writes the file whole, or not at all. Raises RtmeterError if its ending is none, or it cannot be
    written."""
    import pyarrow.csv
    import pyarrow.parquet

    if out.suffix not in _FORMATS:
        remedy = f"end it with {' or '.join(_FORMATS)}"
        raise RtmeterError("is no format of a table", field="-o", value=str(out), remedy=remedy)
    make = pyarrow.parquet.ParquetWriter
    if out.suffix == ".csv":
        make, answer = pyarrow.csv.CSVWriter, _flat(answer)
    with whole_file(out, "-o") as partial, make(partial, answer.schema) as writer:
        for batch in answer:
            writer.write_batch(batch)
