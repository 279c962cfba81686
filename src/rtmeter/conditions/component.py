"""The machine of a cell's server, where that is another one: its lock, its conditions, and its sampling."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from rtmeter.campaign.condition_options import SystemSettings
from rtmeter.conditions import journal
from rtmeter.conditions.monitor import SERVER_FILE
from rtmeter.conditions.restore import Restored, restore, restore_before_a_run
from rtmeter.conditions.settings import Launcher, Settings, no_launcher
from rtmeter.conditions.strain import Strain
from rtmeter.errors import RtmeterError
from rtmeter.host import remote_lock
from rtmeter.host.remote_root import RemoteRoot
from rtmeter.host.remote_shell import Shell
from rtmeter.host.root import Root
from rtmeter.host.ssh import Ssh
from rtmeter.host.threads import cpu_set
from rtmeter.model import Cell, Doubt

_FIELD = "hosts.component"


class Component:
    """A part of what stands (conditions.Part): all that is asked of the host that the server runs on.

    What the controller has asked of it holds there too, unless the cell says otherwise. A host that is a
    container or namespace of this machine has its lock and its conditions already.
    """

    def __init__(self, cell: Cell, folder: Path, here: Root) -> None:
        self._cell, self._folder, self._here = cell, folder, here
        self._host = cell.hosts["component"]
        self._parts: list[Settings | Strain] = []
        self._asked: dict[str, Any] = {}
        self._own: frozenset[str] = frozenset()  # what is asked of it alone
        self._same_machine = False
        self._stack = ExitStack()
        self.launcher: Launcher = no_launcher
        """What the server's command is put behind there."""
        self.root: Root = here
        """The machine there, once entered."""

    def __enter__(self) -> Self:
        with ExitStack() as stack, self._named():
            root = self.root = connected(self._host, stack)
            self._same_machine = is_same(root, self._here)
            if not self._same_machine:
                remote_lock.take(root.shell)
            restore_before_a_run(root)
            self._ask()
            if "settings" in self._asked:
                settings = self._settings()
                self._parts.append(stack.enter_context(settings))
                self.launcher = settings.launcher
            keep_off(root, self._measured_cpus)
            self._parts.append(stack.enter_context(self._strain()))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def check(self) -> None:
        """While the probes run. Raises RtmeterError where the cell is known to fail."""
        with self._named():
            for part in self._parts:
                part.check()

    def facts(self) -> dict[str, Any]:
        """``server``: which host, whether it is a part of this machine, and what is said of this one."""
        found: dict[str, Any] = {"host": self._host, "same_machine": self._same_machine, "asked": self._asked}
        found |= {"effective": {}, "achieved": {}}
        for part in self._parts:
            for word, said in part.facts().items():
                found[word] = found.get(word, {}) | said
        return {"server": found}

    def doubts(self) -> list[Doubt]:
        """What was not there as it was asked to be."""
        found = [doubt for part in self._parts for doubt in part.doubts()]
        return [replace(doubt, message=f"{self._host}: {doubt.message}") for doubt in found]

    def failure(self) -> RtmeterError | None:
        """What fails the cell, if anything does."""
        found = next((error for part in self._parts if (error := part.failure()) is not None), None)
        return found and self._name(found)

    def _ask(self) -> None:
        """Settles what is asked of it."""
        conditions, parts = self._cell.conditions, ("settings", "load")
        own: dict[str, Any] = conditions.get("server", {})
        shared = {} if self._same_machine else conditions
        self._own = frozenset(own)
        self._asked = {part: shared[part] for part in parts if part in shared} | own

    def _settings(self) -> Settings:
        asked = SystemSettings.model_validate(self._asked["settings"])
        return Settings(asked, self.root, strict=bool(self._cell.conditions.get("strict")))

    def _strain(self) -> Strain:
        conditions, config = self._cell.conditions, self._cell.config
        words = {word: conditions[word] for word in ("strict", "monitor_ns") if word in conditions}
        ours = set(config.get("cpus") or ())
        return Strain(self._asked | words, self._folder, ours, 0, self.root, monitor_file=SERVER_FILE)

    @property
    def _measured_cpus(self) -> frozenset[int]:
        """There."""
        cell = self._cell
        cpus = cell.config.get("cpus") if cell.server_cpus is None else cell.server_cpus
        return frozenset(cpus or ()) | cpu_set(self._asked.get("settings", {}).get("isolate"))

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except RtmeterError as error:
            raise self._name(error) from None

    def _name(self, error: RtmeterError) -> RtmeterError:
        """The error with its host, and with the option by which that was asked."""
        if error.value == self._host:
            return error
        error.message = f"{self._host}: {error.message}"
        head, dot, rest = (error.field or "").partition(".")
        if {"conditions": "settings"}.get(head, head) in self._own:
            error.field = f"server_{head}{dot}{rest}"
        return error


def connected(host: str, stack: ExitStack) -> RemoteRoot:
    """The machine of that host, until the stack is left. Raises RtmeterError if it cannot be reached."""
    shell = Shell(Ssh(host, _FIELD))
    stack.callback(shell.close)
    return RemoteRoot(shell=shell)


def is_same(there: Root, here: Root) -> bool:
    """Whether both are one machine, booted once; what does not tell its boot is another one."""
    return journal.boot_of(there) == journal.boot_of(here) != ""


def keep_off(root: RemoteRoot, cpus: Iterable[int]) -> None:
    """Lets the shell that reads the machine run on other CPUs than these, where there are any."""
    rest = set(root.cpus()) - set(cpus)
    if rest:
        root.shell.run(f"taskset -p {sum(1 << cpu for cpu in rest):x} $$")


def restore_there(host: str, here: Root, *, set_aside: bool = False) -> Restored:
    """restore() of another machine, by its journal here; the journal stays if it cannot be reached."""
    try:
        with ExitStack() as stack:
            root = connected(host, stack)
            if not is_same(root, here):
                remote_lock.take(root.shell)
            return restore(root, set_aside=set_aside)
    except RtmeterError as error:
        path = journal.path_of(host)
        why = f"it may not be as it was found: {error.message}; {error.remedy}"
        return Restored((), (why,), journal.set_aside(path) if set_aside else path)
