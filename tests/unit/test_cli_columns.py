"""Tables on narrow terminals: what is shown is whole, what is not is named."""

from __future__ import annotations

from io import StringIO

import pytest
from rich import box
from rich.console import Console
from rich.table import Table

from rtmeter.attach.callbacks import Callback
from rtmeter.cli import columns
from rtmeter.cli.callback_table import show_callbacks
from rtmeter.cli.columns import print_table
from rtmeter.cli.commands.attach import _show_threads
from rtmeter.cli.rigs_progress import Row, table_of
from rtmeter.host.threads import Task
from rtmeter.measure.programs.looking import ThreadSeen
from rtmeter.measure.programs.named import Called

NUMBERS = ["10,000", "12,345.6", "23,456.7", "34,567.8"]


def printed(
    width: int,
    *,
    markup: bool = True,
    cell: str = "a-name-that-is-rather-long",
    head: str = "cell",
    rows: int = 1,
) -> str:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(head, overflow="fold")
    for header in ("n", "mean\nus", "p99\nus", "max\nus"):
        table.add_column(header, justify="right", no_wrap=True, overflow="fold")
    table.add_column("verdict", no_wrap=True)
    for _ in range(rows):
        table.add_row(cell, *NUMBERS, "[red]inconclusive[/red]" if markup else "inconclusive")
    out = StringIO()
    console = Console(file=out, width=width, force_terminal=True, no_color=True, highlight=False)
    print_table(console, table, ["mean\nus", "p99\nus"], markup=markup)
    return out.getvalue()


@pytest.mark.parametrize(
    ("width", "shown", "left_out"),
    [
        (120, NUMBERS, ""),
        (88, NUMBERS, ""),
        (84, [NUMBERS[0], *NUMBERS[2:]], "84 columns have no room for mean: see --json"),
        (72, [NUMBERS[0], NUMBERS[3]], "72 columns have no room for mean, p99: see --json"),
        (30, [NUMBERS[0], NUMBERS[3]], "30 columns have no room for mean, p99: see --json"),
    ],
)
@pytest.mark.parametrize("markup", [True, False])
def test_a_narrow_terminal_gets_fewer_numbers_but_whole_ones(width, shown, left_out, markup):
    text = printed(width, markup=markup)
    row = next(line.split() for line in text.splitlines() if "inconclusive" in line)
    assert row[1:-1] == shown
    assert row[0].startswith("a-name-")
    words = " ".join(text.split())
    assert ("no room" in words) == bool(left_out)
    assert left_out in words


@pytest.mark.parametrize("rows", [1, 250])
def test_text_that_looks_like_markup_stays_text(rows):
    text = printed(120, markup=False, cell="[/x] [red]", head="[/y] [b]", rows=rows)
    assert (text.count("[/x] [red]"), text.count("[/y] [b]")) == (rows, 1)


NAME = "a[/x] [b]\x1b"


def test_names_of_others_are_shown_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    task = Task(1, 2, NAME, False, False, "S", "other", 0, 0, 0)
    _show_threads([ThreadSeen(task, (0,), None, 0, 0.0, None)], as_json=False)
    callback = Callback("subscription", (2,), NAME, NAME, (), False, ())
    show_callbacks([Called((task,), callback)], [], as_json=False)
    row = Row(NAME, 1, 0, says=NAME)
    rows = StringIO()
    Console(file=rows, width=140).print(table_of([row], 1))
    assert rows.getvalue().count(r"a[/x] [b]\x1b") == 2
    assert capsys.readouterr().out.count(r"a[/x] [b]\x1b") == 4


@pytest.mark.parametrize("width", [88, 84, 72, 66])
def test_a_name_is_whole_as_long_as_a_column_can_be_left_out(width):
    assert " a-name-that-is-rather-long " in printed(width)


@pytest.mark.parametrize("colours", [True, False])
@pytest.mark.parametrize("markup", [True, False])
@pytest.mark.parametrize("width", [120, 60])
def test_many_rows_look_as_few_do(monkeypatch, colours, markup, width):
    def text(many: int) -> str:
        monkeypatch.setattr(columns, "_MANY", many)
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column("cell", overflow="fold")
        for header in ("n", "max\nus", "late"):
            table.add_column(header, justify="right", no_wrap=True, overflow="fold")
        table.add_column("verdict", no_wrap=True)
        for number in range(40):
            name = f"\\[x]wäkeup-日本-{number}-of-a-rather-long-name" if number % 7 else "b"
            table.add_row(name, "10,000", f"{number:,}.5", "lost", "[red]fail[/red]" if number % 3 else "")
        out = StringIO()
        console = Console(file=out, width=width, force_terminal=colours, highlight=False)
        print_table(console, table, ["late"], markup=markup)
        return out.getvalue()

    assert text(many=1) == text(many=1000)
