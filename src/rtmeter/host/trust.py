"""What root may heed: files that nobody can write who is not root already (docs/security.md).

These are root; who called sudo; and whose this rtmeter is, since root runs that one's code by running it.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path

from rtmeter.errors import RtmeterError

_MOST_LINKS = 40  # as the kernel has it


def require_trusted(path: Path, *, field: str, value: str, verb: str) -> None:
    """Does nothing unless this is root. Raises RtmeterError, which says that root does not ``verb`` it, if
    another user could have put something else into its place; OSError if it is not there."""
    if os.geteuid() != 0:
        return
    users = trusted_users()
    *above, last = visited(path)
    for step in (*above, last):
        why = _why_not(step, users, sticky_will_do=step != last)
        if why:
            whose = "" if step == last else f" ({step} lies on its way)"
            raise RtmeterError(
                f"root does not {verb} {path}: {step} {why}{whose}",
                field=field,
                value=value,
                remedy="see what it holds, then give it to root (chown root) and take the others' permission "
                "to write (chmod go-w); or run rtmeter as the user whose it is",
            )


def trusted_users() -> frozenset[int]:
    """Who could be root anyway, by number."""
    caller = os.environ.get("SUDO_UID", "")
    own = Path(__file__).stat().st_uid
    return frozenset({0, own, *([int(caller)] if caller.isdecimal() else [])})


def visited(path: Path) -> Iterator[Path]:
    """Every folder, link and file that the kernel passes on its way to ``path``, and that itself. Raises
    OSError if it is not there."""
    at, links = Path("/"), 0
    parts = list(reversed(path.absolute().parts))
    while parts:
        part = parts.pop()
        if part == "..":
            at = at.parent
            continue
        step = at / part
        yield step
        if stat.S_ISLNK(step.lstat().st_mode):
            links += 1
            if links > _MOST_LINKS:
                step.stat()  # raises what the kernel says of it
            parts += reversed(step.readlink().parts)
        else:
            at = step


def _why_not(step: Path, users: frozenset[int], *, sticky_will_do: bool) -> str:
    """Why another user may have changed what is there; empty if none can."""
    facts = step.lstat()
    if facts.st_uid not in users:
        return f"belongs to {_user(facts.st_uid)}"
    if stat.S_ISLNK(facts.st_mode):
        return ""
    if facts.st_mode & stat.S_ISVTX and stat.S_ISDIR(facts.st_mode) and sticky_will_do:
        return ""  # what lies in it belongs to those alone whose it is, which is looked at next
    if facts.st_mode & stat.S_IWOTH:
        return "can be written by everybody"
    if facts.st_mode & stat.S_IWGRP and not _is_private(facts.st_gid, users):
        return f"can be written by the group {_group(facts.st_gid)}"
    return ""


def _is_private(group: int, users: frozenset[int]) -> bool:
    """Whether it is a trusted user's own group, of that one's name, with none of the others in it."""
    names = {name for user in users if (name := _user(user))}
    try:
        entry = grp.getgrgid(group)
    except KeyError:
        return False
    return entry.gr_name in names and names.issuperset(entry.gr_mem)


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _group(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
