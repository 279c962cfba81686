"""rtmeter archive: results of many machines in one place, and what they say together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from rtmeter.cli import exit_codes
from rtmeter.cli.choices import one_of

if TYPE_CHECKING:
    from rtmeter.archive.engine import Engine
    from rtmeter.errors import RtmeterError

EXAMPLE = "rtmeter archive add results --to s3://lab/archive --label site=north"
DETAILS = (
    "Cells of any number of machines as tables in a folder or an object store, without a server: "
    "distributions that add up, exact maxima, verdicts, causes and findings. Adding again adds nothing "
    "twice; many may add at once. docs/archive.md says what is asked of it."
)

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")

ArchivePlace = Annotated[
    str, typer.Argument(metavar="ARCHIVE", help="A folder, or the URL of an object store.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
DEFAULT = "archive"
_LONGEST_DAYS = 36_500
_FEW = 5
EngineOption = Annotated[
    str,
    typer.Option(
        help="What computes: spark for what one machine cannot hold.",
        **one_of("--engine", ["duckdb", "spark"]),
    ),
]
SinceOption = Annotated[
    str | None, typer.Option("--since", help="Only from this day on: 2026-11-22.", show_default=False)
]


@app.command("add")
def add_(
    paths: Annotated[
        list[Path] | None, typer.Argument(metavar="RESULTS...", help="Default: results.", show_default=False)
    ] = None,
    to: Annotated[
        str, typer.Option("--to", help="The archive: a folder, or an object store's URL.")
    ] = DEFAULT,
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label", help="NAME=VALUE of all these cells; rig=NAME names the rig.", show_default=False
        ),
    ] = None,
    with_samples: Annotated[
        bool,
        typer.Option(
            "--with-samples",
            help="Take their samples along: late ones and their surroundings for good, all for 30 days.",
        ),
    ] = False,
    as_json: Json = False,
) -> int:
    """Add cells: each once, whoever adds it again; of those that are there what the archive lacks."""
    from rtmeter.archive.engine import need_archive

    need_archive()
    from rtmeter.archive.add import add
    from rtmeter.archive.labels import parse_labels
    from rtmeter.archive.tables import archive_at
    from rtmeter.cli.output import print_errors, print_json
    from rtmeter.cli.reading_progress import counting
    from rtmeter.results.cells import folders_of, stored
    from rtmeter.values import harmless

    labels, archive = parse_labels(label or []), archive_at(to)
    archive.ask()
    given, failed = _of_loops(paths or [Path("results")])
    folders, more = folders_of(given)
    failed += more
    if not folders:
        raise failed[0]
    with counting(len(folders), "cells read") as say:
        done = add(archive, stored(folders), labels, say, with_samples)
    failed += done.failed
    if as_json:
        taken = {"sampled": done.sampled} if with_samples else {}
        wrong = [error.to_json() for error in failed]
        running = list(map(str, done.running))
        about = {"archive": to, "new": done.new, "known": done.known, "completed": done.completed, **taken}
        unexplained = [error.to_json() for error in done.unexplained]
        print_json(about | {"running": running, "failed": wrong, "unexplained": unexplained})
    else:
        keep = " (their labels stay as they are)" if labels else ""
        there = f", {done.known:,} were there{keep}" if done.known else ""
        there += f", {done.completed:,} of them completed" if done.completed else ""
        samples = f"; samples of {done.sampled:,} taken along" if with_samples else ""
        print(f"{to}: {done.new:,} cells added{there}{samples}")
        for folder in done.running:
            print(harmless(f"left out: {folder}, whose program goes on: add it when that has ended"))
        for error in done.unexplained[:_FEW]:
            print(harmless(f"without causes: {error}"))
        if len(done.unexplained) > _FEW:
            print(f"without causes: {len(done.unexplained) - _FEW:,} more")
    print_errors(failed, "cells or runs that could not be read")
    return exit_codes.ERROR if failed else exit_codes.PASS


def _of_loops(paths: list[Path]) -> tuple[list[Path], list[RtmeterError]]:
    """The paths, below which the cells of programs' own loops are made, and which could not be."""
    from rtmeter.cli import of_loop
    from rtmeter.errors import RtmeterError
    from rtmeter.results.loops import cell_of_loop

    found: list[Path] = []
    failed: list[RtmeterError] = []
    for path in paths:
        try:
            found.append(of_loop(path))
        except RtmeterError as error:
            failed.append(error)
            if (cell := cell_of_loop(path)).exists():
                found.append(cell)
    return found, failed


@app.command("ls")
def ls(archive: ArchivePlace = DEFAULT, as_json: Json = False) -> int:
    """List the rigs with their latest verdicts."""
    from rtmeter.archive.engine import need_archive
    from rtmeter.cli.answers import print_rows, rows_json
    from rtmeter.cli.output import print_json

    need_archive()
    from rtmeter.archive.query import RIGS

    with _selecting(archive, RIGS) as answer:
        if as_json:
            print_json(rows_json(answer))
        else:
            print_rows(answer)
    return exit_codes.PASS


@app.command("sql")
def sql(
    query: Annotated[str, typer.Argument(metavar="SELECT", help="One statement.", show_default=False)],
    archive: ArchivePlace = DEFAULT,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV with a header.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write a file: .parquet or .csv.", show_default=False)
    ] = None,
    as_json: Json = False,
) -> int:
    """Ask the tables cells, distributions, maxima, causes, findings, sampled and samples a question."""
    from rtmeter.cli.answers import shown_as

    show = shown_as(csv, out, as_json)
    with _selecting(archive, query) as answer:
        show(answer)
    return exit_codes.PASS


@app.command("check")
def check_(archive: ArchivePlace = DEFAULT, as_json: Json = False) -> int:
    """Prove that nothing is missing, damaged or there twice."""
    from rtmeter.archive.check import check, refuse, sampled
    from rtmeter.archive.engine import need_archive
    from rtmeter.cli.output import print_json
    from rtmeter.values import harmless

    need_archive()
    from rtmeter.archive.tables import archive_at

    place = archive_at(archive).open()
    cells, flaws = check(place)
    if as_json:
        found = [{"kind": flaw.kind, "message": flaw.message} for flaw in flaws]
        about = {"archive": archive, "cells": None if cells < 0 else cells}
        about |= {} if cells < 0 else dict(zip(("sampled", "samples"), sampled(place), strict=True))
        print_json(about | {"flaws": found})
        return exit_codes.ERROR if any(flaw.kind == "damage" for flaw in flaws) else exit_codes.PASS
    for flaw in flaws:
        print(harmless(f"{flaw.kind}: {flaw.message}"))
    refuse(flaws, place)
    of, samples = sampled(place)
    print(
        f"{archive}: whole: {cells:,} cells, each once; n, bins, quantiles, misses and blocks of each agree"
        + (f"; {samples:,} samples of {of:,} of them" if of else "")
    )
    return exit_codes.PASS


def _selecting(archive: str, text: str):  # type: ignore[no-untyped-def]
    from rtmeter.archive.engine import need_archive

    need_archive()
    from rtmeter.archive.query import selecting
    from rtmeter.archive.tables import archive_at

    return selecting(archive_at(archive), text)


@app.command("merge")
def merge(
    archive: ArchivePlace = DEFAULT,
    by: Annotated[
        list[str] | None,
        typer.Option("--by", help="A column of cells, or label:NAME; may be repeated.", show_default=False),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option("--where", help="COLUMN=VALUE: only these; may be repeated.", show_default=False),
    ] = None,
    since: SinceOption = None,
    engine: EngineOption = "duckdb",
    as_json: Json = False,
) -> int:
    """Merge cells: the exact distribution of each group, its maximum, one verdict over its rigs."""
    from rtmeter.archive.engine import answering, need_archive
    from rtmeter.cli.archive_tables import day_of, groups_json, print_groups
    from rtmeter.cli.output import print_json

    need_archive()
    from rtmeter.archive.groups import GroupsAsked, invalid_in_words, merged
    from rtmeter.archive.labels import parse_conditions
    from rtmeter.archive.tables import archive_at

    asked = GroupsAsked(by or [], parse_conditions(where or []), day_of(since))
    with answering(archive_at(archive).open(), cast("Engine", engine)) as backend:
        found = merged(backend, asked)
    if all(group.cells == group.invalid for group in found):
        invalid = sum(group.invalid for group in found)
        raise _nothing(archive, [invalid_in_words(invalid)] if invalid else [])
    if as_json:
        print_json({"archive": archive, "groups": groups_json(found, asked.by)})
    else:
        print_groups(found, asked.by)
    return exit_codes.worst(
        exit_codes.of_outcome(group.verdict.outcome) if group.verdict else exit_codes.PASS for group in found
    )


def _nothing(archive: str, left_out: list[str], of: str = "valid cell") -> Exception:
    """A name that is written wrongly must not look like a fleet that passes."""
    from rtmeter.errors import RtmeterError

    message = f"holds no {of} that is asked for{': ' if left_out else ''}{'; '.join(left_out)}"
    remedy = "`rtmeter archive ls` lists its rigs, `rtmeter archive sql` what its cells are like"
    return RtmeterError(message, field="archive", value=archive, remedy=remedy)


_COLUMNS = {"p50": "p50_ns", "p90": "p90_ns", "p99": "p99_ns", "p99.9": "p99_9_ns", "p99.99": "p99_99_ns"}
_COLUMNS |= {"p99.999": "p99_999_ns", "max": "max_ns"}

QuantileOption = Annotated[str, typer.Option(help="Of which statistic.", **one_of("--quantile", _COLUMNS))]
WhereOption = Annotated[
    list[str] | None,
    typer.Option("--where", help="COLUMN=VALUE: only these; may be repeated.", show_default=False),
]


@app.command("trend")
def trend(
    archive: ArchivePlace = DEFAULT,
    quantile: QuantileOption = "p99.9",
    where: WhereOption = None,
    engine: EngineOption = "duckdb",
    as_json: Json = False,
) -> int:
    """Say what rose and what fell, by what changed with it."""
    _trend(archive, quantile, where, engine, as_json, "trend")
    return exit_codes.PASS


@app.command("regressions")
def regressions(
    archive: ArchivePlace = DEFAULT,
    quantile: QuantileOption = "p99.9",
    where: WhereOption = None,
    since: SinceOption = None,
    engine: EngineOption = "duckdb",
    as_json: Json = False,
) -> int:
    """Say what rose and is still up, by what changed with it; exit code 2 if anything is."""
    found = _trend(archive, quantile, where, engine, as_json, "regressions", since)
    return exit_codes.FAIL if found else exit_codes.PASS


def _trend(
    archive: str,
    quantile: str,
    where: list[str] | None,
    engine: str,
    as_json: bool,
    what: str,
    since: str | None = None,
) -> bool:
    """Whether anything is told."""
    from rtmeter.archive.engine import answering, need_archive
    from rtmeter.cli.archive_tables import causes_json, day_of, print_causes
    from rtmeter.cli.output import print_json

    column, first = _COLUMNS[quantile], day_of(since)
    need_archive()
    from dataclasses import replace

    from rtmeter.archive.groups import GroupsAsked
    from rtmeter.archive.labels import parse_conditions
    from rtmeter.archive.tables import archive_at
    from rtmeter.archive.trend import trend

    with answering(archive_at(archive).open(), cast("Engine", engine)) as backend:
        found = trend(backend, GroupsAsked((), parse_conditions(where or [])), column)
    if not found.series + found.short:
        valid = found.untold + found.unordered
        raise _nothing(archive, found.left_out(quantile), "series" if valid else "valid cell")
    if what == "regressions":
        rises = [one for one in found.changes if one.rose and one.lasts]
        kept = [one for one in rises if first is None or one.when >= first]
        found = replace(found, changes=tuple(kept))
    if as_json:
        about = {"series": found.series, "too_short": found.short, "invalid": found.invalid}
        about |= {"without_quantile": found.untold, "without_order": found.unordered}
        print_json({"archive": archive, **about, "quantile": quantile, what: causes_json(found.causes())})
    else:
        print_causes(found, quantile)
    return bool(found.changes)


@app.command("prune")
def prune_(
    archive: ArchivePlace = DEFAULT,
    samples_days: Annotated[
        int,
        typer.Option(
            "--samples-days",
            min=0,
            max=_LONGEST_DAYS,
            help="Let samples go that were taken so long ago, late ones stay.",
        ),
    ] = 30,
    as_json: Json = False,
) -> int:
    """Let samples go whose time is over, join small files, remove what has been no part of it for a week."""
    from dataclasses import asdict

    from rtmeter.archive.engine import need_archive
    from rtmeter.cli.output import print_json

    need_archive()
    from rtmeter.archive.prune import prune
    from rtmeter.archive.tables import archive_at

    done = prune(archive_at(archive), samples_days=samples_days)
    if as_json:
        print_json({"archive": archive, **asdict(done)})
    else:
        samples = f"{done.samples:,} samples let go; " if done.samples else ""
        samples += f"{done.abandoned:,} that counted for nothing removed; " if done.abandoned else ""
        print(f"{archive}: {samples}{done.joined:,} files became {done.became:,}, {done.removed:,} removed")
    return exit_codes.PASS
