"""A program in the place of ssh, which goes nowhere."""

from __future__ import annotations

from pathlib import Path


def no_ssh(folder: Path, body: str) -> str:
    """The program, made in the folder; in its ``body`` ``$last`` is the command that is to run there."""
    program = folder / "ssh"
    program.write_text(f"#!/bin/sh\nfor last; do :; done\n{body}\n")
    program.chmod(0o755)
    return str(program)
