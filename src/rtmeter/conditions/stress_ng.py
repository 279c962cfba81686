"""stress-ng running: on this machine, or on another one for as long as the connection holds."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from rtmeter.conditions.companion import Companion, require_program
from rtmeter.conditions.companion_there import GRACE_S, CompanionThere
from rtmeter.conditions.processes import children, processor_s
from rtmeter.host.remote_root import RemoteRoot
from rtmeter.host.root import Root

_FIELD = "load"
_REPORT = "report.yaml"

_BEFORE = 'folder=$(mktemp -d "${TMPDIR:-/tmp}/rtmeter-XXXXXX") || exit'
_FILES = f'--temp-path "$folder" --yaml "$folder/{_REPORT}" >&2'
_AFTER = f'cat "$folder/{_REPORT}" 2>/dev/null; rm -rf "$folder"'
"""On another machine; what it prints there is its report."""


class StressNg:
    """It runs from the beginning with these arguments, on ``cpus`` (None: any), until end()."""

    def __init__(
        self, arguments: Sequence[str], folder: Path, cpus: Sequence[int] | None, root: Root
    ) -> None:
        """``folder``: to be made, for its own files if it runs here. Raises RtmeterError if it is missing."""
        require_program("stress-ng", _FIELD, root)
        self._root, self._folder = root, folder
        command = ["stress-ng", *arguments, "--timeout", "0", "--metrics"]
        self._process: Companion
        if isinstance(root, RemoteRoot):
            own = {"more": _FILES, "before": _BEFORE, "after": _AFTER}
            self._process = CompanionThere(root.shell.ssh, command, field=_FIELD, cpus=cpus, **own)
        else:
            folder.mkdir()
            command += ["--temp-path", str(folder), "--yaml", str(folder / _REPORT)]
            self._process = Companion(command, field=_FIELD, cpus=cpus)

    @property
    def death(self) -> str | None:
        """How it ended; None while it runs."""
        return None if self._process.exit_code is None else self._process.how_it_ended

    def workers(self) -> int:
        """How many of its workers live."""
        return 0 if self.death or self._pid is None else children(self._pid, self._root)

    def processor_s(self) -> float:
        """Processor time that it and its workers took so far, in seconds."""
        return 0 if self._pid is None else processor_s(self._pid, self._root)

    def end(self) -> str:
        """Ends it and its workers, and removes its files; returns its report (YAML), if it made one."""
        self._process.end(grace_s=GRACE_S)  # its disk workers may have much to write still
        there = isinstance(self._root, RemoteRoot)
        report = self._process.stdout() if there else _text(self._folder / _REPORT)
        shutil.rmtree(self._folder, ignore_errors=True)
        self._process.close()
        return report

    @property
    def _pid(self) -> int | None:
        return self._process.program_pid


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
