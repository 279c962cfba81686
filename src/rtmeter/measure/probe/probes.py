"""Finds the probes of this machine and asks them what they can do."""

from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtmeter.errors import RtmeterError, did_you_mean
from rtmeter.host.ending import run_within
from rtmeter.host.trust import require_trusted
from rtmeter.measure.probe import known_adapters
from rtmeter.measure.probe.elf import HEAD_BYTES, MAGIC, machines_of
from rtmeter.measure.probe.known_adapters import KNOWN_ADAPTERS
from rtmeter.values import from_json

PREFIX = "rtmeter-probe-"
_DESCRIBE_TIMEOUT_S = 20
_LOOK = "free the machine of other work; else run it with --describe, and see what it waits for"


@dataclass(frozen=True, slots=True)
class Probe:
    """An executable that measures one middleware, and its own words about itself (spec/probe.md)."""

    name: str
    path: Path
    facts: dict[str, Any]

    @property
    def measures(self) -> tuple[str, ...]:
        """Of wakeup, timer.one_shot, timer.periodic, roundtrip, request, cycle, chain, discovery."""
        return tuple(self.facts.get("measures", ()))

    @property
    def wire(self) -> str | None:
        """What its messages are to other processes: who says the same answers it. None if it does not say."""
        said = self.facts.get("wire")
        return said if isinstance(said, str) else None

    @property
    def scripted(self) -> bool:
        """Whether its clock is a script's: no time passes, so nothing disturbs it and it disturbs nobody."""
        return self.facts.get("clock") == "scripted"

    def serves_inline(self, options: Mapping[str, str]) -> bool:
        """Whether its round trips with these options need no server process."""
        inline: dict[str, list[str]] = self.facts.get("inline", {})
        chosen = any(options.get(name) in values for name, values in inline.items())
        return chosen or self.facts.get("server") == "inline"

    @property
    def same_host(self) -> bool:
        """Whether its client and server must be on one host."""
        return self.facts.get("server") == "same_host"

    @property
    def same_host_options(self) -> dict[str, list[str]]:
        """The values of its options with which they must be, although not with others."""
        return dict(self.facts.get("same_host", {}))


_PACKAGE = Path(__file__).parents[2]
_CHECKOUT = _PACKAGE.parents[1]
"""Where this is run from, if that is one."""


def search_path() -> Iterator[Path]:
    """The folders that are looked through, the first one that has a probe wins.

    RTMETER_PROBE_PATH, the package's own, a checkout's builds, colcon workspaces, PATH; of a prefix whose
    programs are in PATH, what is installed there too.
    """
    yield from _split("RTMETER_PROBE_PATH")
    yield _PACKAGE / "probes"
    for build in _builds(_CHECKOUT):
        yield from sorted((build / "adapters").glob("*"))
    for workspaces in ("AMENT_PREFIX_PATH", "CMAKE_PREFIX_PATH"):  # colcon sets the latter for plain CMake
        yield from (prefix / "lib" / "rtmeter" for prefix in _split(workspaces))
    for folder in _split("PATH"):
        yield folder
        if folder.name == "bin":
            yield folder.parent / "lib" / "rtmeter"


def _split(variable: str) -> list[Path]:
    return [Path(part) for part in os.environ.get(variable, "").split(os.pathsep) if part]


def cross_builds() -> Iterator[Path]:
    """The folders of the checkout's probes for other machines (make cross)."""
    if (_CHECKOUT / "spec" / "probe.md").is_file():
        yield from sorted((_CHECKOUT / "build").glob("cross-*/adapters/*"))


def _builds(checkout: Path) -> Iterator[Path]:
    """The checkout's builds, newest first."""
    if not (checkout / "spec" / "probe.md").is_file():
        return
    caches = [(file.stat().st_mtime_ns, file) for file in (checkout / "build").glob("*/CMakeCache.txt")]
    for changed_ns, file in sorted(caches, reverse=True):
        if _fit_to_measure(file, changed_ns):
            yield file.parent


@functools.cache
def _fit_to_measure(cache: Path, _changed_ns: int) -> bool:
    """Whether the build is optimised, for this machine, and not slowed by sanitizers."""
    entries = (line.partition("=") for line in cache.read_text(errors="replace").splitlines())
    value = {key.partition(":")[0]: text for key, _, text in entries}
    optimised = value.get("CMAKE_BUILD_TYPE", "").startswith("Rel")
    return optimised and not value.get("RTMETER_SANITIZE") and not value.get("CMAKE_TOOLCHAIN_FILE")


def find_probes() -> dict[str, Path]:
    """Adapter name → executable, sorted by name."""
    found: dict[str, Path] = {}
    for folder in search_path():
        for path in _executables(folder):
            found.setdefault(path.name.removeprefix(PREFIX), path)
    return dict(sorted(found.items()))


def path_of(name: str) -> Path | None:
    """The executable of the adapter of this name; None if there is none."""
    if not name or "/" in name:
        return None
    return next(filter(_is_executable, (folder / f"{PREFIX}{name}" for folder in search_path())), None)


def _executables(folder: Path) -> list[Path]:
    try:
        paths = sorted(folder.glob(f"{PREFIX}*"))
    except OSError:
        return []
    return [path for path in paths if _is_executable(path)]


def _is_executable(path: Path) -> bool:
    try:
        return path.is_file() and os.access(path, os.X_OK) and _may_run_here(path)
    except OSError:  # a name that is too long, a folder that is not for us
        return False


def _may_run_here(path: Path) -> bool:
    """False of an executable for machines of another kind: a folder of them may be for targets."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError:  # said when it is described
        return True
    return not head.startswith(MAGIC) or os.uname().machine in machines_of(head, os.uname().machine)


def describe(name: str, path: Path) -> Probe:
    """Asks the probe what it is, once. Raises RtmeterError if it does not answer, or root must not run it."""
    try:
        require_trusted(path, field="adapter", value=name, verb="run")
        return _described(name, path, path.stat().st_mtime_ns)
    except OSError as error:
        raise _broken(name, path, str(error)) from None


@functools.cache
def _described(name: str, path: Path, _changed_ns: int) -> Probe:
    try:
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        done = run_within(_DESCRIBE_TIMEOUT_S, [path, "--describe"], **pipes)
        facts = from_json(done.stdout) if done.returncode == 0 else None
    except subprocess.TimeoutExpired:
        raise _broken(name, path, f"it does not answer within {_DESCRIBE_TIMEOUT_S} s", _LOOK) from None
    except (OSError, ValueError) as error:
        raise _broken(name, path, str(error)) from None
    if not isinstance(facts, dict):
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise _broken(name, path, last[0] if last else f"it ended with exit code {done.returncode}")
    return Probe(name, path, facts)


def _broken(name: str, path: Path, why: str, remedy: str | None = None) -> RtmeterError:
    return RtmeterError(
        f"its probe {path} does not describe itself: {why}",
        field="adapter",
        value=name,
        remedy=remedy or _remedy_for_libraries(why),
    )


def _remedy_for_libraries(why: str) -> str:
    """What helps against the loader's words: libraries of another version, or none."""
    if "undefined symbol" not in why:
        return "build it again where its middleware's libraries are found (source its setup.bash)"
    found = os.environ.get("LD_LIBRARY_PATH", "")
    where = f" (LD_LIBRARY_PATH = {found})" if found else ""
    return (
        f"its middleware is found in another version than it was built with{where}: "
        "source the setup.bash that it was built with, or build it again in this shell"
    )


def remedy_for(name: str) -> str:
    """What to do to have an adapter that is not here: what the configure of this checkout's newest build
    lacked, or else what such adapters need."""
    for build in _builds(_CHECKOUT):
        try:
            rows = (build / "rtmeter-adapters.txt").read_text(encoding="utf-8").splitlines()
        except OSError:
            continue
        for row in rows:
            adapter, state, needs = [*row.split("|", 2), "", ""][:3]
            if adapter == name and state == "not built":
                return f"{needs}, then make"
        break
    return known_adapters.remedy_for(name)


class NotBuiltError(RtmeterError):
    """An adapter that rtmeter has and that is not on this machine."""


def find(name: str) -> Probe:
    """The probe of the adapter. Raises RtmeterError saying what to install (NotBuiltError), or to call it."""
    path = path_of(name)
    if path is None:
        if name in KNOWN_ADAPTERS:
            raise NotBuiltError("is not built here", field="adapter", value=name, remedy=remedy_for(name))
        remedy = did_you_mean(name, {*find_probes(), *KNOWN_ADAPTERS}) or remedy_for(name)
        raise RtmeterError("is not built here", field="adapter", value=name, remedy=remedy)
    return describe(name, path)


def require(name: str, measurement: str) -> Probe:
    """The probe of the adapter, able to do the measurement (e.g. ``timer.one_shot``).

    Raises RtmeterError as find() does, or saying what it can measure.
    """
    probe = find(name)
    if measurement not in probe.measures:
        raise RtmeterError(
            f"does not measure {measurement}",
            field="adapter",
            value=name,
            remedy=f"it measures {', '.join(probe.measures)}",
        )
    return probe
