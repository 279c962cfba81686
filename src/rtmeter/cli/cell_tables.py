"""Cells as text: one in full, or many in a table. Times in microseconds; the unit is in every header."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rtmeter.cli.columns import print_table
from rtmeter.cli.condition_rows import ConditionRow, ConditionRows
from rtmeter.cli.output import besides, console, doubt_words, microseconds
from rtmeter.model import Doubt
from rtmeter.results import condition_words, words
from rtmeter.results.condition_words import told_once, which_cells
from rtmeter.results.record import CellRecord, Failure, Provenance, Statistics
from rtmeter.values import Scheduling, format_duration

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_STATISTICS = {
    "min": "min_ns",
    "mean": "mean_ns",
    "p50": "p50_ns",
    "p99": "p99_ns",
    "p99.9": "p99_9_ns",
    "p99.999": "p99_999_ns",
    "max": "max_ns",
}
_HEADERS = {name: f"{name}\nus" for name in _STATISTICS}
_OF_ALL_RUNS = _HEADERS | {name: f"{name}\nworst\nus" for name in _STATISTICS if name.startswith("p")}
_EXPENDABLE = ("p99.999", "min", "mean", "p50", "p99")
STYLES = {"pass": "green", "fail": "red", "inconclusive": "yellow", "error": "red", "skipped": "yellow"}


def show_cell(record: CellRecord, path: Path) -> None:
    """The cell's conditions, counts, quantities, doubts and verdict."""
    out = console()
    out.print(f"{record.id}: {_what(record)}", markup=False)
    _show_conditions(record, out)
    _show_findings(record, out)
    if summary := record.summary:
        counts = ", ".join(f"{name} {count:,}" for name, count in summary.counts.items())
        out.print(f"counts: {counts}\n{summary.identity}", markup=False)
        for line in [*words.beside(record.beside), *words.publications(record.beside)]:
            out.print(line, markup=False)
        if there := words.nodes(record.beside):
            out.print(f"background nodes: {there}", markup=False)
        table = _table("quantity", "view", "n", *_HEADERS.values(), "at k")
        for name, views in summary.quantities.items():
            quantity = name + condition_words.uncertainty(name, record.clock_offset, record.kernel_stamps)
            for view, values in views.items():
                if values is not None:
                    at_k = _text(values.max_at_k)
                    table.add_row(quantity, words.VIEWS[view], f"{values.n:,}", *_row(values), at_k)
        print_table(out, table, [_HEADERS[name] for name in _EXPENDABLE])
    _show_chain(record, out)
    _show_doubts(record.error, record.status, record.warnings, out)
    _show_verdict(record, path, out)
    if record.status == "interrupted":
        out.print(f"interrupted{_so_far(record)}: what was measured is kept, and judged as far as it goes")
    out.print(f"stored in {path}", markup=False)


def _so_far(record: CellRecord) -> str:
    """How much of it was measured, if that is known."""
    counts, planned = record.summary.counts if record.summary else {}, record.config.get("samples")
    done = counts.get("released", counts.get("armed"))  # of one-shot timers
    return "" if done is None or planned is None else f" after {done:,} of {planned:,} releases"


def _show_chain(record: CellRecord, out: Console) -> None:
    """What became of the samples on each path of a chain, and how old its outputs were."""
    if record.chain is None:
        return
    for number, path in enumerate(record.chain.paths, 1):
        judged = " (judged)" if path.stages == record.chain.judged else ""
        out.print(f"path {number}{judged}: {' > '.join(path.stages)}\n{path.identity}", markup=False)
    table = _table("path", "quantity", "n", *_HEADERS.values(), "at k")
    for number, path in enumerate(record.chain.paths, 1):
        for name, values in (("data_age", path.data_age), ("reaction", path.reaction)):
            table.add_row(str(number), name, f"{values.n:,}", *_row(values), _text(values.max_at_k))
    print_table(out, table, [_HEADERS[name] for name in _EXPENDABLE])


def show_cells(cells: Iterable[tuple[CellRecord, str]], *, repeats: bool = False) -> None:
    """One line a condition, of cells given with their names: the judged quantity per release (of several runs
    of_all_runs()), what was missed, and the verdict; each of its ``repeats`` below, if that is asked. Of each
    record only what is said stays in memory."""
    from rich.markup import escape

    out = console()
    rows = ConditionRows()
    shown: dict[str | None, CellRecord] = {}
    said: list[tuple[str, Failure | None, str, list[Doubt]]] = []
    for record, name in cells:
        shown.setdefault(_file(record), record)
        rows.add(record, name)
        said.append((name, record.error, record.status, record.warnings))
    found = list(rows)
    counted = ["runs"] if any(row.repeats for row in found) else []
    first = "condition" if counted else "cell"
    headers = _OF_ALL_RUNS if counted else _HEADERS
    table = _table(first, "quantity", *counted, "n", *headers.values(), "missed", "verdict")
    for row in found:
        runs = [str(len(row.repeats) or 1)] if counted else []
        table.add_row(escape(row.name), row.quantity, *runs, *_cell_row(row))
        for one in row.repeats if repeats else ():
            table.add_row(f"  {escape(one.name)}", one.quantity, "", *_cell_row(one))
    for record in reversed(shown.values()):
        _show_conditions(record, out, machine_only=True)
    *least, p50, p99 = (headers[name] for name in _EXPENDABLE)
    print_table(out, table, [*least, "quantity", p50, p99], markup=True)
    if counted:
        out.print(words.OF_ALL_RUNS, markup=False)
    alone = _common_doubts([(name, doubts) for name, _, _, doubts in said], out)
    for name, error, status, _ in said:
        own = alone.get(name, [])
        if error or own:
            out.print(f"{name}:", markup=False)
            _show_doubts(error, status, own, out)


def _common_doubts(cells: Sequence[tuple[str, Sequence[Doubt]]], out: Console) -> dict[str, list[Doubt]]:
    """Shows once each warning that several cells have, with their names; returns the others, by cell."""
    from rich.markup import escape

    alone: dict[str, list[Doubt]] = {}
    for doubt, names in told_once((name, doubt) for name, doubts in cells for doubt in doubts):
        if len(names) == 1:
            alone.setdefault(names[0], []).append(doubt)
        else:
            which = escape(which_cells(names, len(cells)))
            out.print(f"[yellow]{doubt.type}[/yellow]: {escape(doubt_words(doubt))}: {which}", soft_wrap=True)
    return alone


def _file(record: CellRecord) -> str | None:
    """The file that an imported cell was made of."""
    return record.imported.file if record.imported else None


def _cell_row(row: ConditionRow) -> list[str]:
    verdict, complete = row.verdict, row.state == "complete"
    outcome: str = verdict.outcome if verdict and complete else "" if complete else row.state
    outcome = "error" if outcome in ("failed", "invalid") else outcome
    style = STYLES.get(outcome, "red" if outcome else "")
    said = f"[{style}]{outcome}[/{style}]" if style else outcome
    if row.values is None:
        return ["0", *("-" for _ in _STATISTICS), "-", said]
    return [f"{row.n:,}", *_row(row.values), verdict.missed if verdict else "-", said]


def _row(values: Statistics) -> list[str]:
    shown = values.shown
    return [microseconds(getattr(shown, key)) for key in _STATISTICS.values()]


def _text(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _table(*headers: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for header in headers:
        numeric = header.endswith("us") or header in ("n", "at k", "missed", "runs")
        name = header in ("cell", "condition", "quantity")
        table.add_column(header, justify="right" if numeric else "left", no_wrap=not name, overflow="fold")
    return table


def _what(record: CellRecord) -> str:
    if imported := record.imported:
        tool = f"{imported.tool} {imported.version or ''}".strip()
        return f"{imported.quantity}, {imported.series} of {imported.file}, by {tool}"
    mode = f" {record.mode}" if record.mode else ""
    pace = "timeout" if record.mode == "one_shot" else "every"
    every = f", {pace} {format_duration(record.tick_ns)}" if record.tick_ns else ""
    return f"{record.measurement}{mode} on {record.adapter}{every}, {record.status}"


def _show_conditions(record: CellRecord, out: Console, *, machine_only: bool = False) -> None:
    """A number without its conditions is not shown."""
    if record.imported:
        out.print(*provenance(record, record.imported), sep="\n", markup=False)
        return
    machine, effective = record.machine, record.effective
    if machine:
        about = (machine.get(key, "?") for key in ("cpu_model", "cpus_online", "kernel", "kernel_version"))
        out.print("machine: {}, {} CPUs, Linux {} {}".format(*about), markup=False)
        if warning := condition_words.unfit(machine.get("virtual_machine")):
            out.print(f"[yellow]{warning}[/yellow]")
    if machine_only or not effective:
        return
    parts = [f"policy {Scheduling.from_probe(effective.get('scheduling', {}))}"]
    parts += [f"set {effective['apply']}"] if effective.get("apply") else []
    parts += [f"CPUs {','.join(map(str, effective.get('cpus') or '?'))}"]
    parts += ["memory locked"] if effective.get("memory_locked") else []
    parts += ["idle states held off"] if effective.get("cpu_dma_latency") == 0 else []
    parts += [f"overrun {effective['overrun']}"] if effective.get("overrun") else []
    parts += condition_words.carried(record.path)
    parts += words.crowd(record.config)
    parts += words.traced(record.instrument, record.counters) if record.measurement == "loop" else []
    parts += condition_words.in_words(record.conditions)
    ends = (condition_words.middleware(record.adapter_facts), condition_words.server(record))
    told = [end for end in ends if end not in ("", "none")]
    out.print("; ".join([f"conditions: {', '.join(parts)}", *told]), markup=False)


def provenance(record: CellRecord, imported: Provenance) -> Iterator[str]:
    """What an imported cell's file says of its conditions, and what it does not say."""
    machine = record.machine
    shown = {name: machine.get(name) for name in ("hostname", "kernel", "kernel_version") if name in machine}
    said = [f"{name.replace('_', ' ')} {value}" for name, value in shown.items()]
    if record.period_ns is not None:
        given = " as --period says" if imported.period_from == "--period" else ""
        said.append(f"every {format_duration(record.period_ns)}{given}")
    said += [f"{name.replace('_', ' ')} {value}" for name, value in imported.facts.items()]
    yield f"conditions: {'; '.join(said) or 'the file states none'}"
    if imported.unknown:
        yield f"not stated by the file: {', '.join(imported.unknown)}"
    if resolution_ns := record.summary and record.summary.resolution_ns:
        yield f"values are known to {format_duration(resolution_ns)}: each is later by up to that"


def _show_findings(record: CellRecord, out: Console) -> None:
    """The names of those that matter most; `rtmeter check` and the report tell them in full."""
    for findings, where in ((record.findings, ""), (record.server_findings, " on the server's host")):
        for grade in ("fatal", "high"):
            names = [finding.id for finding in findings or () if finding.grade == grade]
            if names:
                out.print(f"[{STYLES['fail']}]{grade}[/] for punctuality{where}: {', '.join(names)}")


def _show_doubts(error: Failure | None, status: str, doubts: Sequence[Doubt], out: Console) -> None:
    from rich.markup import escape

    if error:
        style = STYLES.get(status, "red")
        said = escape(str(error.as_error))
        out.print(f"  [{style}]{status}[/{style}]: {said}", soft_wrap=True)
    for doubt in besides(error, doubts):
        out.print(f"  [yellow]{escape(doubt.type)}[/yellow]: {escape(doubt_words(doubt))}")


def _show_verdict(record: CellRecord, path: Path, out: Console) -> None:
    from rich.markup import escape

    from rtmeter.cli.evidence import verdict_lines  # not for many cells: it brings all of statistics
    from rtmeter.judge.next_step import next_step
    from rtmeter.judge.points import worst_of
    from rtmeter.results.cells import StoredCell

    if (verdict := record.verdict) and not record.error:
        style = STYLES[verdict.outcome]
        step = None if verdict.outcome == "pass" else next_step(verdict, [StoredCell(path, record)])
        line, *more = verdict_lines(verdict, worst_of(record), step)
        out.print(f"[{style}]{verdict.outcome}[/{style}]: {escape(line)}", soft_wrap=True)
        for line in more:
            out.print(line, markup=False, soft_wrap=True)
    if meanwhile := condition_words.meanwhile(record.endured):
        out.print(f"  {'meanwhile':<17}{'; '.join(meanwhile)}", markup=False, soft_wrap=True)
