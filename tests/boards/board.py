"""An ARM board: Debian's files of that architecture (tools/board-root.sh), each program run by qemu-user, in
namespaces of its own; the kernel is this machine's. Mounts and the entry of binfmt_misc that runs ARM files
go with the one process that holds them, and that with the tests, of which it reads what they never write. How
long anything takes there means nothing."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import uuid
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MACHINES = {"armhf": "armv7l", "aarch64": "aarch64"}
"""What `uname -m` says there."""

_EMULATORS = {"armhf": "qemu-arm", "aarch64": "qemu-aarch64"}
_CLASSES = {"armhf": 1, "aarch64": 2}  # EI_CLASS
_NUMBERS = {"armhf": 0x28, "aarch64": 0xB7}  # e_machine
_MASK = r"\xff" * 7 + r"\x00" + r"\xff" * 8 + r"\xfe\xff\xff\xff"  # of any OS, and ET_EXEC or ET_DYN

_HOLD = """
set -e
mount -t overlay -o "lowerdir=$tree,upperdir=$own/changes,workdir=$own/work" board "$own/root"
for folder in dev proc sys; do mount --rbind "/$folder" "$own/root/$folder"; done
for folder in lib64 lib/x86_64-linux-gnu; do mount --bind "/$folder" "$own/root/$folder"; done
mount --bind "$own/boot_id" "$own/root/proc/sys/kernel/random/boot_id"
mount --bind "$own/rt_runtime" "$own/root/proc/sys/kernel/sched_rt_runtime_us"
hostname board
mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
printf %s ":$name:$entry" >/proc/sys/fs/binfmt_misc/register
trap "echo -1 >/proc/sys/fs/binfmt_misc/$name" EXIT
trap "" INT TERM HUP
echo up
read -r _
"""
"""The emulator's own libraries are the machine's; the one file of the kernel's that tests change is not."""

_ENTER = """#!/bin/sh
for last; do :; done
exec nsenter --target {pid} --mount --uts -- chroot {root} /bin/busybox env -i \\
  PATH=/usr/local/bin:/usr/bin:/bin HOME=/root /bin/sh -c "${{SSH_ORIGINAL_COMMAND-$last}}"
"""


@dataclass
class Board:
    """``files``: ``glibc`` or ``busybox``, of which tools/board-root.sh makes the disk; ``own``: a folder."""

    arch: str
    files: str
    own: Path
    name: str = field(default_factory=lambda: f"rtm{secrets.token_hex(3)}")  # of its entry
    holder: subprocess.Popen[str] | None = field(default=None, init=False)

    def up(self) -> None:
        """Skips the test where this machine cannot have one."""
        tree = ROOT / "build" / "board" / self.arch / self.files
        emulator = shutil.which(_EMULATORS[self.arch])
        if os.geteuid() != 0 or emulator is None or not tree.is_dir():
            pytest.skip(f"needs root, {_EMULATORS[self.arch]} and {tree.relative_to(ROOT)}: make cross")
        for folder in ("changes", "work", "root"):
            (self.own / folder).mkdir()
        (self.own / "boot_id").write_text(f"{uuid.uuid4()}\n")
        self.rt_runtime.write_text("950000\n")
        head = rf"\x7fELF\x{_CLASSES[self.arch]:02x}\x01\x01" + r"\x00" * 9
        head += rf"\x02\x00\x{_NUMBERS[self.arch]:02x}\x00"
        entry = f"M::{head}:{_MASK}:{emulator}:F"
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.holder = subprocess.Popen(
            ["unshare", "--mount", "--uts", "sh", "-c", _HOLD],
            env=os.environ | {"name": self.name, "entry": entry, "tree": str(tree), "own": str(self.own)},
            text=True,
            **pipes,
        )
        assert self.holder.stdout is not None
        if self.holder.stdout.readline() != "up\n":
            _, said = self.holder.communicate("\n", timeout=60)
            pytest.skip(f"no namespaces, overlay or binfmt_misc are to be had here: {said}")
        self.login.write_text(_ENTER.format(pid=self.holder.pid, root=self.own / "root"))
        self.login.chmod(0o755)

    def down(self) -> None:
        if self.holder is not None and self.holder.poll() is None:
            self.holder.communicate("\n", timeout=60)

    @property
    def login(self) -> Path:
        """Runs there what sshd was asked for, or stands in the place of ssh itself."""
        return self.own / "login"

    @property
    def rt_runtime(self) -> Path:
        """The board's own sched_rt_runtime_us."""
        return self.own / "rt_runtime"

    def at(self, name: str) -> Path:
        """A file that was written there."""
        return self.own / "changes" / name.lstrip("/")

    def put(self, name: str, image: bytes) -> None:
        """A program, as anybody puts one there."""
        script = f"mkdir -p $(dirname {name}); cat >{name}; chmod 755 {name}"
        subprocess.run([self.login, script], input=image, check=True, timeout=60)

    def remove(self, name: str) -> None:
        """There: a disk that is mounted goes on showing what is removed from below it."""
        subprocess.run([self.login, f"rm {name}"], check=True, timeout=60)
