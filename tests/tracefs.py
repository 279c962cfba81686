"""tracefs for a session of tests: mounted while it lasts where it is not, as most systems have it.

Tests run side by side: what one mounted and took away would be gone for another; and a rig of theirs has
mounts of its own in each connection (rigs_here.py), so that one made in the first is not there in the next.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

AT = Path("/sys/kernel/tracing")


def mount() -> bool:
    """Whether it was done: it takes root, a kernel that has it, and a place for it."""
    if os.geteuid() != 0 or (AT / "instances").is_dir():
        return False
    command = ["mount", "-t", "tracefs", "tracefs", AT]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def unmount() -> None:
    """Once nothing of it is in use."""
    subprocess.run(["umount", "--lazy", AT], capture_output=True, check=False)
