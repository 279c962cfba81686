"""What answers questions of an archive: DuckDB in this process, or Spark; both through Ibis, both from the
same files. Tables: ``cells``, and ``distributions``, ``maxima``, ``causes``, ``findings`` with the rows that
belong to a cell; ``sampled``, and ``samples`` with those that belong to one of it. ``cells`` has what was
completed; ``completed`` says what that is."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

from rtmeter.archive.schema import CELLS, COMPLETABLE, COMPLETED, LATER, OWNERS, SCHEMAS
from rtmeter.archive.tables import Archive, snapshot
from rtmeter.errors import RtmeterError
from rtmeter.results.store import quoted

if TYPE_CHECKING:
    import duckdb
    import ibis
    import pyarrow as pa
    from ibis.backends import BaseBackend

Engine = Literal["duckdb", "spark"]

_WITHOUT_ARCHIVE = "pip install 'rtmeter[archive]'"
_WITHOUT_SPARK = "pip install 'rtmeter[spark]', and Java 17 or newer; or leave out --engine spark"


def need_archive() -> None:
    """Raises RtmeterError if the packages of the extra `archive` are not there."""
    for package in ("deltalake", "ibis"):
        if find_spec(package) is None:
            message = f"needs the package {package}"
            raise RtmeterError(message, field="archive", remedy=_WITHOUT_ARCHIVE)


@contextmanager
def answering(
    archive: Archive, engine: Engine = "duckdb", memory: str | None = None
) -> Iterator[BaseBackend]:
    """The tables of the archive as they are now, for Ibis. Raises RtmeterError if the engine is not there,
    or a file of the archive cannot be read."""
    need_archive()
    with telling(archive, ours=True):
        if engine == "spark":
            with _spark(archive) as backend:
                yield backend
        else:
            import ibis

            backend = ibis.duckdb.connect()
            try:
                fill(backend.con, archive)
                if memory:
                    backend.con.execute(f"SET memory_limit = {quoted(memory)}")
                yield backend
            finally:
                backend.disconnect()


def rows(expression: ibis.Table) -> pa.Table:
    """What an expression finds."""
    return expression.to_pyarrow()


def found_once(backend: BaseBackend, expression: ibis.Table) -> ibis.Table:
    """What an expression finds, for several questions of it: DuckDB keeps it until its connection ends, Spark
    looks again."""
    if backend.name != "duckdb":
        return expression
    return backend.create_table(f"found_{uuid.uuid4().hex}", expression, temp=True)


def as_written(name: str) -> str:
    """The table of those rows too that belong to no cell: for who joins it with cells by cell and batch; of
    the cells without what was completed."""
    return f"{name}_as_written"


def _view(name: str, columns: Sequence[str]) -> str:
    """SELECT of a table's rows that count, in either engine's words; of the cells, where they have these
    columns and not none, with what was completed, each column of a cell being told once."""
    if name in OWNERS:
        owners = " UNION ALL ".join(f"SELECT cell, batch FROM {as_written(one)}" for one in OWNERS[name])
        return f"SELECT * FROM {as_written(name)} SEMI JOIN ({owners}) o USING (cell, batch)"
    if name != CELLS or not columns:
        return f"SELECT * FROM {as_written(name)}"
    told = ", ".join(f"max({column}) AS {column}" for column in COMPLETABLE)
    both = (
        f"coalesce(c.{column}, m.{column}) AS {column}" if column in COMPLETABLE else f"c.{column}"
        for column in columns
    )
    return (
        f"SELECT {', '.join(both)} FROM {as_written(CELLS)} c LEFT JOIN "
        f"(SELECT cell, {told} FROM {as_written(COMPLETED)} GROUP BY cell) m ON c.cell = m.cell"
    )


def fill(connection: duckdb.DuckDBPyConnection, archive: Archive) -> list[str]:
    """Makes the views of the archive's tables; returns the files that they read."""
    tables = snapshot(archive)
    read: list[str] = []
    names = (*tables, *(name for name in LATER if name not in tables))
    files = {name: archive.files(tables[name]) if name in tables else [] for name in names}
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET enable_progress_bar = false")  # it is drawn where answers are printed
    for name in names:
        connection.register(f"no_{name}", SCHEMAS[name].empty_table())
        every = f"SELECT * FROM no_{name}"
        if files[name] and archive.is_local:
            read += files[name]
            listed = ", ".join(map(quoted, files[name]))
            columns = f"SELECT * FROM read_parquet([{listed}], union_by_name=true, hive_partitioning=false)"
            every = f"{columns} UNION ALL BY NAME {every}"
        elif files[name]:
            connection.register(f"those_{name}", tables[name].to_pyarrow_dataset())
            every = f"SELECT * FROM those_{name} UNION ALL BY NAME {every}"
        connection.execute(f"CREATE VIEW {as_written(name)} AS {every}")
    # a newer archive has more columns than are known
    of_cells = connection.table(as_written(CELLS)).columns if files[COMPLETED] else []
    for name in names:
        connection.execute(f"CREATE VIEW {name} AS {_view(name, of_cells)}")
    return read


@contextmanager
def _spark(archive: Archive) -> Iterator[BaseBackend]:
    import ibis

    try:
        import pyspark  # noqa: F401
        from pyspark.sql import SparkSession
        from pyspark.sql.pandas.types import from_arrow_schema
    except ImportError:
        raise RtmeterError(
            "Spark is not installed", field="--engine", value="spark", remedy=_WITHOUT_SPARK
        ) from None
    session: Any = None
    try:
        builder = SparkSession.builder.appName("rtmeter archive").config("spark.sql.session.timeZone", "UTC")
        builder = builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "8")
        session = builder.config("spark.log.level", "ERROR").getOrCreate()
    except Exception as error:
        said = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        message = f"Spark does not start: {said}"
        raise RtmeterError(message, field="--engine", value="spark", remedy=_WITHOUT_SPARK) from None
    try:
        tables = snapshot(archive)
        names = (*tables, *(name for name in LATER if name not in tables))
        files = {name: archive.files(tables[name]) if name in tables else [] for name in names}
        for name in names:
            form, of = from_arrow_schema(SCHEMAS[name]), files[name]
            found = session.read.schema(form).parquet(*of) if of else session.createDataFrame([], form)
            found.createOrReplaceTempView(as_written(name))
        for name in names:
            view = _view(name, SCHEMAS[CELLS].names if files[COMPLETED] else [])
            session.sql(view).createOrReplaceTempView(name)
        yield ibis.pyspark.connect(session)
    finally:
        session.stop()


@contextmanager
def telling(archive: Archive, *, ours: bool = False) -> Iterator[None]:
    """What an engine says of files that are gone or damaged, in our form. ``ours``: what is asked is not the
    user's, so that nothing is asked wrongly."""
    import duckdb
    import pyarrow as pa

    try:
        yield
    except duckdb.Error as error:
        # What is wrong in a file's footer is an error of no kind of its own, or of any: names are not there.
        asked_wrongly = (duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException)
        no_file = (duckdb.PermissionException, duckdb.OutOfMemoryException, duckdb.InterruptException)
        in_file = isinstance(error, duckdb.IOException) or type(error) is duckdb.Error
        in_file = not isinstance(error, asked_wrongly) and (in_file or ".parquet" in str(error))
        if isinstance(error, no_file) or not (ours or in_file):
            raise
        raise damaged(archive, error) from error
    except (pa.ArrowException, OSError) as error:
        raise damaged(archive, error) from error
    except Exception as error:
        if "SparkException" in str(error) or type(error).__module__.startswith(("py4j", "pyspark")):
            raise (damaged if archive.is_local else _out_of_reach)(archive, error) from error
        raise


def damaged(archive: Archive, error: Exception) -> RtmeterError:
    """The error of a file that cannot be read."""
    said = _said(error)
    remedy = "`rtmeter archive check` names every file that is missing or damaged"
    return RtmeterError(f"cannot be read: {said}", field="archive", value=archive.url, remedy=remedy)


def _out_of_reach(archive: Archive, error: Exception) -> RtmeterError:
    """The error of Spark, which reads an object store by what it was given for that, and not as we do."""
    scheme = archive.url.partition("://")[0]
    remedy = (
        f"give Spark what reads {scheme}:// (Hadoop's connector and credentials, in spark-defaults.conf), "
        "or leave out --engine spark"
    )
    message = f"cannot read {archive.url}: {_said(error)}"
    return RtmeterError(message, field="--engine", value="spark", remedy=remedy)


def _said(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
