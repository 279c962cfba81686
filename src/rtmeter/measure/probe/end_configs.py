"""A cell → the configs of its two ends (spec/probe.md), as one session."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Any

from rtmeter.measure.probe import beside
from rtmeter.model import TWO_ENDS, Cell
from rtmeter.results.store import CLIENT_LOG, SERVER_LOG


def client_config(cell: Cell, folder: Path) -> dict[str, Any]:
    """Of the client, or of the only probe there is; its log goes into ``folder``."""
    return beside.of_the_ends(cell.config) | {
        "version": 1,
        "role": "client" if cell.config["measurement"] in TWO_ENDS else "single",
        "log": str(folder / CLIENT_LOG),
        "session": f"rtm{os.getpid():x}{secrets.token_hex(3)}",
        "watch_stdin": True,
    }


def server_config(cell: Cell, client: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Of the server: the client's, but for what the cell says of the server."""
    config = {key: value for key, value in client.items() if key != "samples"}
    config |= {"role": "server", "log": str(folder / SERVER_LOG)}
    if cell.server_cpus is not None:
        config["cpus"] = list(cell.server_cpus)
    if cell.server_options is not None:
        config["options"] = cell.server_options
    elif cell.server_adapter not in (None, cell.adapter):
        config["options"] = {}
    if cell.server_shared_clock is not None:
        config["shared_clock"] = cell.server_shared_clock
    if cell.server_receive is not None:
        config["receive"] = cell.server_receive
    elif cell.server_adapter not in (None, cell.adapter):
        config.pop("receive", None)
    return config
