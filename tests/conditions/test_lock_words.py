"""What the machine's lock says of its holder, whatever was in its file before or somebody has put there."""

from __future__ import annotations

import json
from pathlib import Path

from rtmeter.host import lock


def test_who_holds_it_is_said_whole_whatever_was_said_before(state_folder: Path) -> None:
    with lock.machine_lock("rtmeter run a-campaign-with-a-very-long-name.yaml"):
        pass
    assert not lock.is_ours()
    with lock.machine_lock("rtmeter run b"):
        assert lock.is_ours()
        assert json.loads((state_folder / lock.FILE).read_text())["what"] == "rtmeter run b"
    assert not lock.is_ours()


def test_what_a_terminal_would_heed_is_shown_by_escapes_and_no_more_of_it_than_fits() -> None:
    about = {"pid": 7, "user": "eve", "what": "\x1b[2Jrun", "since": "now"}
    assert lock.holder(json.dumps(about).encode()) == r"\x1b[2Jrun of eve, process 7, since now"
    assert len(lock.holder(json.dumps(about | {"what": "x" * 5_000}).encode())) == 300
    assert lock.holder(b"{}") == "another process, which does not say who it is"
