"""Sample logs → columns → samples.parquet, whole or as far as they are whole."""

from rtmeter.samples.parquet import (
    ColumnsFile,
    Recovery,
    exchanges,
    write_columns,
    write_parquet,
    write_values,
)
from rtmeter.samples.reader import Log, LogReader, read_log

__all__ = [
    "ColumnsFile",
    "Log",
    "LogReader",
    "Recovery",
    "exchanges",
    "read_log",
    "write_columns",
    "write_parquet",
    "write_values",
]
