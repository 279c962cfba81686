"""The pages' script: Vega-Lite, what it needs, the licences of both, and the pages' own.

To bundle the libraries takes two seconds, as long as all else of a small report: they are kept in the user's
cache folder, a file for each version.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import vl_convert

from rtmeter.errors import RtmeterError
from rtmeter.host.files import open_file, replace_file

_SNIPPET = "window.vegaEmbed = vegaEmbed;"


@cache
def script() -> str:
    """All of it, as one."""
    own = files("rtmeter.report").joinpath("templates/report.js").read_text(encoding="utf-8")
    made = f"\n/*!\n{licences()}*/\n{_libraries()}\n{own}\n"
    return made.replace("</script", "<\\/script").replace("\r", "")


def licences() -> str:
    """What the libraries are, whose, and under which licences."""
    return files("rtmeter.report").joinpath("vega-licences.txt").read_text(encoding="utf-8")


def cache_folder() -> Path:
    """Where the user keeps what can be made again. Raises RuntimeError for one without a home."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rtmeter"


def _libraries() -> str:
    name, made = f"vega-of-vl-convert-{version('vl-convert-python')}.js", None
    with suppress(OSError, RuntimeError, RtmeterError):  # no home, or no room there
        path = cache_folder() / name
        made = _kept(path)
        if made is None:
            made = _bundled()
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(path, f"// {_digest(made)}\n{made}".encode())
    return made or _bundled()


def _bundled() -> str:
    made: str = vl_convert.javascript_bundle(_SNIPPET)
    return made


def _kept(path: Path) -> str | None:
    """What was written there; None if that is not whole, or not this user's alone to write."""
    try:
        with open_file(path) as file:
            about, content = os.fstat(file.fileno()), file.read().decode()
    except (OSError, UnicodeDecodeError):
        return None
    first, _, made = content.partition("\n")
    own = about.st_uid == os.geteuid() and not about.st_mode & 0o022
    return made if own and first == f"// {_digest(made)}" else None


def _digest(text: str) -> str:
    return hashlib.sha256(f"{_SNIPPET}\n{text}".encode()).hexdigest()
