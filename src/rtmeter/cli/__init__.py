"""Words typed at a shell → answers, files and an exit code: one file per command, each imported only when
it is the one that runs."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Sequence
from functools import cache, wraps
from importlib import import_module
from keyword import iskeyword
from pathlib import Path
from typing import Any

import typer

from rtmeter.cli import exit_codes
from rtmeter.cli.given_once import GivenOnce
from rtmeter.cli.output import heard, let_go, print_error
from rtmeter.errors import RtmeterError
from rtmeter.host.ending import Killed, left_words
from rtmeter.host.files import no_text

COMMANDS = {
    "measure": "Measure one cell, given by options.",
    "attach": "Measure the loop of a program that runs, as it is.",
    "run": "Measure every cell of a campaign file.",
    "watch": "Look at a run that was started elsewhere, while it goes on.",
    "summary": "Show counts and quantiles of measured cells.",
    "report": "Write an HTML report of measured cells.",
    "archive": "Keep results of many machines in one place, and ask them together.",
    "site": "Make a static site of all results.",
    "plot": "Draw one plot of measured cells as a picture.",
    "plan": "Say how long a run must be to pass a requirement.",
    "verdict": "Judge measured cells by a deadline.",
    "compare": "Say whether B is better or worse than A.",
    "layers": "Say what each middleware adds to a floor.",
    "explain": "Say why releases were late, from the kernel's events.",
    "published": "Set measured values beside published ones.",
    "sql": "Ask cells and samples a question in SQL.",
    "check": "Say what on this machine hurts punctuality.",
    "check-adapter": "Say whether an adapter keeps the contract.",
    "adapters": "List the middlewares that can be measured here.",
    "bundle": "Put the probes for a target into one file.",
    "export": "Write cells as files for other programs.",
    "import": "Make cells of other tools' files.",
    "graph": "Make the graph of a chain of another tool's file.",
    "restore": "Put back what a run that was killed had changed of the machine.",
    "recover": "Make a cell of a sample log that was left alone or damaged.",
}
"""Command → one line of help; rtmeter.cli.commands.<command> (import_ for import, _ for -) has the
function and an example."""

_READ_CELLS = frozenset(
    [
        "summary",
        "verdict",
        "report",
        "compare",
        "export",
        "plot",
        "sql",
        "site",
        "layers",
        "published",
        "explain",
    ]
)

_OBJECTS_BETWEEN_COLLECTIONS = 50_000
"""Records and rows are trees, which go without: Python's 700 cost a third of a verdict on 10,000 cells."""

_EPILOG = (
    "Exit codes: 0 pass (or nothing to judge), 1 error, 2 requirement not met, 3 inconclusive. "
    "Example: rtmeter measure wakeup --adapter posix --period 1ms --duration 10s --deadline 1ms"
)


_OTHERWISE = {("plan", "--find-max"): "rtmeter.cli.find_max"}
"""Commands that one option makes another one of, with options of its own (docs/decisions/0024)."""


def command_line(chosen: str | None, given: Sequence[str] = ()) -> Any:
    """The whole command line; only the chosen command is imported, the others stand by name. ``given``: what
    was written, where that decides how the command is meant."""
    return _built(chosen, _module_of(chosen, given)) if chosen in COMMANDS else _built("", "")


@cache
def _built(chosen: str, module_name: str) -> Any:
    app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", pretty_exceptions_enable=False)
    app.callback(epilog=_EPILOG)(_top)
    for name, line in COMMANDS.items():
        if name == chosen:
            module = import_module(module_name)
            text = f"{line}\n\n{module.DETAILS}\n\n[bold]Example:[/bold] [cyan]{module.EXAMPLE}[/cyan]"
            if hasattr(module, "app"):
                for one in module.app.registered_commands:
                    one.cls = GivenOnce
                app.add_typer(module.app, name=name, help=text)
            else:
                app.command(name, help=text, cls=GivenOnce)(
                    _reading(module.command) if name in _READ_CELLS else module.command
                )
        else:
            app.command(name, help=line)(_not_chosen)
    return typer.main.get_command(app)


def _module_of(name: str, given: Sequence[str]) -> str:
    options = {word.partition("=")[0] for word in given}
    found = (
        module for (command, option), module in _OTHERWISE.items() if command == name and option in options
    )
    return next(found, f"rtmeter.cli.commands.{name.replace('-', '_')}{'_' * iskeyword(name)}")


def _reading(command: Callable[..., int]) -> Callable[..., int]:
    """The command, which finds the cells of programs' own loops below its paths made."""

    @wraps(command)
    def run(**options: Any) -> int:
        for name, value in options.items():
            paths = value if isinstance(value, list) else [value]
            paths = [of_loop(one) if isinstance(one, Path) else one for one in paths]
            options[name] = paths if isinstance(value, list) else paths[0]
        return command(**options)

    return run


def of_loop(path: Path) -> Path:
    """The path, below which the cells of programs' own loops are made; of what one recorded into, its cell.
    Raises RtmeterError if one cannot be made."""
    from rtmeter.results.loops import cell_of_loop, loop_beside, loop_folders

    if not path.is_dir() and not loop_beside(path).is_dir():
        return path
    if loop_folders(path):
        from rtmeter.measure import own_loop
        from rtmeter.values import harmless

        if passed := own_loop.adopt(path):
            more = f" (and {len(passed) - 1:,} more)" if len(passed) > 1 else ""
            print(harmless(f"rtmeter: passed over: {passed[0]}{more}"), file=sys.stderr)
    return cell_of_loop(path)


def _not_chosen() -> None:
    raise AssertionError("another command was chosen")


def _version(wanted: bool) -> None:
    if wanted:
        from rtmeter.values import version

        print(version())
        raise typer.Exit


def _top(
    _: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Measures how punctual a robot's middleware is on this machine, and judges it by a deadline."""


def invoke(argv: list[str]) -> int:
    """Runs the command line and returns its exit code; every error is printed once, none is raised."""
    as_json = "--json" in argv
    try:
        if (word := next(filter(_is_no_text, argv), None)) is not None:
            raise no_text(word, "argument")
        words = _being_completed() or argv
        chosen = next((word for word in words if not word.startswith("-")), None)
        code = command_line(chosen, words).main(argv, prog_name="rtmeter", standalone_mode=False)
        with heard():
            _flush()
        return code if isinstance(code, int) else exit_codes.PASS
    except RtmeterError as error:
        print_error(error, as_json=as_json)
    except BrokenPipeError:  # whoever read our output has seen enough
        let_go(sys.stdout.fileno())
    except Killed:
        from rtmeter.cli.interrupt import KEPT

        remedy = KEPT + left_words()
        print_error(RtmeterError("killed at the second interruption", remedy=remedy), as_json=as_json)
    except KeyboardInterrupt:
        print_error(RtmeterError("interrupted"), as_json=as_json)
    except OSError as error:  # what the machine refuses, and nobody has better words for
        if not _takes_output():
            let_go(sys.stdout.fileno())
        # Without a path it may be standard output itself, which then holds no error either.
        print_error(_refused_by_machine(error), as_json=as_json and error.filename is not None)
    except UnicodeEncodeError:  # of the folder that all this is in, said where text must be
        if not _is_no_text(folder := os.getcwd()):  # noqa: PTH109, as it is
            raise
        print_error(no_text(folder, "folder"), as_json=as_json)
    except Exception as error:
        # A mistyped command line: typer's exceptions, whose classes differ between its versions.
        if not hasattr(error, "format_message"):
            raise
        if type(error).__name__ != "NoArgsIsHelpError":  # that one has printed the help
            print_error(_usage_error(error), as_json=as_json)
    return exit_codes.ERROR


def _flush() -> None:
    """What is printed arrives, or it is an error; there is no standard output where it was closed."""
    if sys.stdout is not None:
        sys.stdout.flush()


def _is_no_text(word: str) -> bool:
    """Whether it has bytes that are no UTF-8: JSON, Parquet and SQL hold none, nor what is made of them."""
    return word.encode(errors="replace").decode() != word


def _takes_output() -> bool:
    try:
        _flush()
    except OSError:
        return False
    return True


def _refused_by_machine(error: OSError) -> RtmeterError:
    """A path that no file can have, a disk that is full, a file that is not for us."""
    where = None if error.filename is None else str(error.filename)
    said = (error.strerror or str(error)).lower()
    return RtmeterError(said, where=where, remedy="see to that: the path, its permissions, room on its disk")


def _being_completed() -> list[str]:
    """The command line that a shell asks to have completed; empty if none does."""
    if "_RTMETER_COMPLETE" not in os.environ:
        return []
    line = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS") or ""
    return line.split()[1:]


def _usage_error(error: Exception) -> RtmeterError:
    context = getattr(error, "ctx", None)
    if context is not None and (name := getattr(error, "option_name", None)):
        _name_anew(error, name, context)
    command = context.command_path if context is not None else "rtmeter"
    remedy = f"see `{command} --help`"
    if (wrong := _wrong_value(error)) is not None:
        return RtmeterError(wrong.message, field=wrong.field, value=wrong.value, remedy=remedy)
    message = str(error.format_message()).rstrip(".")  # type: ignore[attr-defined]
    return RtmeterError(message, remedy=remedy)


def _wrong_value(error: Exception) -> RtmeterError | None:
    """What pydantic, by which newer versions of typer read values, found wrong with one; older ones quote it
    themselves."""
    from pydantic import ValidationError

    from rtmeter.campaign.wrong import as_rtmeter_error

    cause, parameter = error.__cause__, getattr(error, "param", None)
    if not isinstance(cause, ValidationError) or parameter is None:
        return None
    return as_rtmeter_error(cause, {}, max(parameter.opts, key=len))


def _name_anew(error: Any, name: str, context: Any) -> None:
    """Has the error for an option of that name propose what it is called now, if it was renamed."""
    from rtmeter.campaign.wrong import FORMER

    now = FORMER.get(name.lstrip("-").replace("-", "_"), "").replace("_", "-")
    if any(f"--{now}" in parameter.opts for parameter in context.command.params):
        error.possibilities = [f"--{now}"]


def main() -> None:
    """The `rtmeter` command."""
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    sys.exit(invoke(sys.argv[1:]))
