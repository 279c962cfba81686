"""The shell that holds the trace instance of attaching: what it sweeps, in a folder in place of tracefs."""

from __future__ import annotations

import subprocess
from pathlib import Path

from rtmeter.measure.programs import attaching


def test_what_others_left_and_still_hold_is_no_word_of_this_one(tmp_path: Path) -> None:
    nobody = 4_194_304 + 1  # above any process's id
    held, free = (tmp_path / "instances" / f"{attaching.PREFIX}{nobody}-{name}" for name in ("held", "free"))
    (held / "tracing_on").mkdir(parents=True)  # as a folder that cannot be removed
    free.mkdir()
    script = attaching._HELPER.replace(attaching._AT, str(tmp_path))
    done = subprocess.run(
        ["sh", "-c", script, "sh", "own", "group"], input="\n", capture_output=True, text=True, check=True
    )
    assert (done.stdout.partition(" ")[0], done.stderr) == ("there", "")
    assert list((tmp_path / "instances").iterdir()) == [held]
