"""A report as its tests read it."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from rtmeter import report
from rtmeter.judge.factors import FactorEffects

HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>\"'{{7*7}}&amp;"
"""A name that would run a script, close an attribute or fill a template if it were not text."""


class Page(HTMLParser):
    """The text of a page that a reader sees, its elements with their attributes, and its plots."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: dict[str, str] = {}
        self._words: list[str] = []
        self._inside: str = ""
        self.feed(html)
        self.text = " ".join(" ".join(self._words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag
        if tag == "script":
            self._script = dict(attrs).get("id") or "own"
            assert self._script not in self.scripts
            self.scripts[self._script] = ""

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts[self._script] += data
        elif self._inside != "style":
            self._words.append(data)

    @property
    def plots(self) -> list[dict[str, Any]]:
        specs = json.loads(zlib.decompress(base64.b64decode(self.scripts["plots"])))
        assert len(specs) == sum("data-plot" in attrs for _, attrs in self.elements)
        return specs


def page_of(path: Path, effects: Sequence[FactorEffects] = ()) -> Page:
    out = report.write(path, path.parent / "report.html", effects=effects)
    return Page(out.read_text(encoding="utf-8"))
