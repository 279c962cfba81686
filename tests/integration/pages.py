"""Runs the commands that a page of docs/ shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import asker
from preloaded import server

ROOT = Path(__file__).parents[2]


def shell_blocks(page: Path, fence: str) -> str:
    """All blocks of a page with that fence, in their order, as one script that ends at the first failure."""
    blocks = re.findall(rf"^```{fence}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    return "set -euo pipefail\n" + "\n".join(blocks)


def run_page(page: Path, home: Path, cwd: Path, fence: str = "sh") -> str:
    """Runs a page's shell blocks with `rtmeter` on the PATH; returns what they printed.

    It is forked of a process that has imported all it needs, unless everything is run in full.
    """
    afresh = os.environ.get("RTMETER_FULL") == "1"
    asks = [] if afresh else [server().fileno()]
    bin_dir = home / "bin"
    bin_dir.mkdir()
    rtmeter = bin_dir / "rtmeter"
    command = "-m rtmeter" if afresh else f'-IS "{asker.__file__}"'
    rtmeter.write_text(f'#!/bin/sh\nexec "{sys.executable}" {command} "$@"\n')
    rtmeter.chmod(0o755)
    environment = os.environ | {
        "HOME": str(home),
        # Where cargo lies does not change with the home directory.
        "CARGO_HOME": os.environ.get("CARGO_HOME", str(Path.home() / ".cargo")),
        "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", str(Path.home() / ".rustup")),
        "RTMETER": str(ROOT),
        "PATH": f"{bin_dir}:{os.environ['PATH']}",
        "CMAKE_BUILD_PARALLEL_LEVEL": "2",
        asker.ASKS: " ".join(map(str, asks)),
    }
    done = subprocess.run(
        ["bash", "-c", shell_blocks(page, fence)],
        cwd=cwd,
        env=environment,
        pass_fds=asks,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=1000,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout
