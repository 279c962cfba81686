"""The kernel's files of another machine, which needs no more than a shell and the usual small programs."""

from __future__ import annotations

import errno
import os
import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from shlex import join, quote

from rtmeter.host.remote_shell import Shell
from rtmeter.host.root import Root
from rtmeter.values import parse_cpus

_POLICIES = {"other": "-o", "fifo": "-f", "rr": "-r", "batch": "-b", "idle": "-i"}
_ERRNO = {os.strerror(number).lower(): number for number in errno.errorcode}
_ERRNO |= {"resource busy": errno.EBUSY}  # as musl has it


@dataclass(frozen=True, slots=True, eq=False)
class RemoteRoot(Root):
    """As Root, on the machine that the shell is on. All methods raise ConnectionLostError when cut off."""

    shell: Shell = field(kw_only=True)
    keeps_journal: bool = field(kw_only=True, default=False)
    """Whether what is changed of it is journalled there, not here."""
    _cpus: list[int] = field(init=False, repr=False, default_factory=list)

    @property
    def host(self) -> str:
        return self.shell.ssh.target

    def exists(self, name: str) -> bool:
        return self._ask(f"test -e {quote(name)}")[0] == 0

    def read_bytes(self, name: str) -> bytes | None:
        code, content = self._ask(f"cat -- {quote(name)} 2>/dev/null")
        return content if code == 0 else None

    def read_all(self, names: Iterable[str]) -> dict[str, str]:
        wanted = list(names)
        if not wanted:
            return {}
        way = "/" + "".join("/" if bit == "1" else "./" for bit in f"{secrets.randbits(32):032b}")
        detours = join(way + name for name in wanted)  # no content can pretend to be such a header
        _, content = self._ask(f"head -v -n 999999999 -- {detours} 2>/dev/null")
        header = re.compile(rf"^==> {re.escape(way)}(/.+) <==\n", re.MULTILINE)
        _, *pieces = header.split(content.decode(errors="replace"))
        found = {name: text.strip() for name, text in zip(pieces[::2], pieces[1::2], strict=True)}
        return {name: found[name] for name in wanted if name in found}

    def write(self, name: str, text: str) -> None:
        there, write = f"test -e {quote(name)}", f"printf %s {quote(text)} | dd bs=65536 of={quote(name)}"
        self.do(f"if {there}; then {write}; else echo {quote(os.strerror(errno.ENOENT))}; false; fi")

    def append(self, name: str, text: str) -> None:
        self.do(f"printf %s {quote(text)} | cat >> {quote(name)}")

    def make_folder(self, name: str) -> None:
        self.do(f"mkdir -- {quote(name)}")

    def remove_folder(self, name: str) -> None:
        self.do(f"rmdir -- {quote(name)}")

    def set_policy(self, tid: int, policy: str, priority: int) -> None:
        self.do(f"chrt {_POLICIES[policy]} -p {int(priority)} {int(tid)}")

    def set_affinity(self, tid: int, cpus: Iterable[int]) -> None:
        self.do(f"taskset -p {sum(1 << cpu for cpu in cpus):x} {int(tid)}")

    def glob(self, pattern: str) -> list[str]:
        escaped = re.sub(r"[^\w*?\[\]/.-]", r"\\\g<0>", pattern)
        _, names = self._ask(f'for f in {escaped}; do test -e "$f" -o -L "$f" && printf \'%s\\n\' "$f"; done')
        return sorted(names.decode(errors="replace").splitlines())

    def real_path(self, name: str) -> str:
        return self._ask(f"readlink -f -- {quote(name)}")[1].decode(errors="replace").strip()

    def cpus(self) -> list[int]:
        """As they were first: the shell may keep off some since, and what is started there does not."""
        if self._cpus:
            return list(self._cpus)
        status = re.search(r"^Cpus_allowed_list:\s*(.*)$", self.read("/proc/self/status") or "", re.MULTILINE)
        self._cpus.extend(parse_cpus(status[1]) if status else ())
        return list(self._cpus)

    def has_program(self, name: str) -> bool:
        return self._ask(f"command -v {quote(name)}")[0] == 0

    def run(self, command: Sequence[str]) -> tuple[int, str]:
        code, said = self._ask(f"{join(command)} 2>&1")
        return code, said.decode(errors="replace")

    def head(self, name: str, count: int) -> bytes:
        return self._ask(f"head -c {int(count)} -- {quote(name)} 2>/dev/null")[1]

    def link(self, name: str) -> str:
        code, said = self._ask(f"readlink -- {quote(name)} 2>/dev/null")
        return said.decode(errors="replace").removesuffix("\n") if code == 0 else ""

    def own_pid(self) -> int:
        return int(self._ask("echo $$")[1])

    def is_superuser(self) -> bool:
        return self._ask("id -u")[1].strip() == b"0"

    def _ask(self, script: str) -> tuple[int, bytes]:
        return self.shell.run(script)

    def do(self, script: str) -> None:
        """Raises OSError with the number that stands for what the program there says."""
        code, said = self._ask(f"{{ {script}; }} 2>&1")
        if code != 0:
            lines = said.decode(errors="replace").strip().splitlines() or [f"exit code {code}"]
            reasons = [line.rpartition(": ")[2] for line in lines]
            known = next((reason for reason in reasons if reason.lower() in _ERRNO), None)
            if known is None:
                raise OSError(errno.EIO, lines[0])
            raise OSError(_ERRNO[known.lower()], known)
