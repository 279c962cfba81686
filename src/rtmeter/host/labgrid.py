"""A place of labgrid, by its own client: acquired, and released as it was found."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rtmeter.errors import RtmeterError
from rtmeter.host.ending import LEFT, run_within
from rtmeter.host.trust import require_trusted
from rtmeter.values import visible

PROGRAM = "labgrid-client"
_LIMIT_S = 60
_OURS_ALREADY = re.compile(r"you have already acquired (this place|place \S+)\.(\s|$)", re.IGNORECASE)
"""Of the same user on another machine, who is somebody else here, it says: … place NAME on MACHINE."""


@contextmanager
def acquired(place: str, say: Callable[[str], None]) -> Iterator[None]:
    """Holds the place while the block runs; one that this user on this machine held before stays held. One
    that cannot be given back is said. Raises RtmeterError if it cannot be had."""
    program, release = _program(place), f"{PROGRAM} -p {place} release"
    LEFT[release] = None  # what does not answer in time may acquire it all the same
    code, said = _client(program, place, "acquire")
    if code != 0:
        del LEFT[release]
    before = code != 0 and _OURS_ALREADY.search(said) is not None
    if code != 0 and not before:
        remedy = f"see `{PROGRAM} -p {place} show`: who has it, and until when"
        raise _error(place, f"cannot be acquired: {_last_line(said)}", remedy)
    try:
        yield
    finally:
        if not before:
            try:
                code, said = _client(program, place, "release")
            except RtmeterError as error:
                code, said = 1, str(error)
            if code == 0:
                del LEFT[release]
            else:
                say(f"its place {place} is not released: {_last_line(said)}")


def _program(place: str) -> str:
    path = shutil.which(PROGRAM)
    if path is None:
        raise _error(place, f"needs the program {PROGRAM}", "pip install labgrid, or leave out the place")
    require_trusted(Path(path), field="place", value=place, verb="run")
    return path


def _client(program: str, place: str, verb: str) -> tuple[int, str]:
    try:
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        done = run_within(_LIMIT_S, [program, "-p", place, verb], **pipes)
    except OSError as error:
        raise _error(place, f"cannot be run: {error.strerror}", "see that it is whole") from None
    except subprocess.TimeoutExpired:
        message = f"did not say within {_LIMIT_S} s whether it could {verb} it"
        remedy = (
            f"see that labgrid's coordinator answers, and by `{PROGRAM} -p {place} show` whether you have it"
        )
        raise _error(place, message, f"{remedy}: `{PROGRAM} -p {place} release`") from None
    return done.returncode, str(done.stdout.decode(errors="replace"))


def _last_line(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return visible(lines[-1]) if lines else f"{PROGRAM} does not say why"


def _error(place: str, message: str, remedy: str) -> RtmeterError:
    return RtmeterError(message, field="place", value=place, remedy=remedy)
