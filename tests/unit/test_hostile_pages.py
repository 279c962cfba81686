"""Whatever names a result has, its pages have the elements that they have for plain names, and no more."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from report_page import HOSTILE

from rtmeter import cli, report
from stored import write_run
from synthetic import Made, write_cell

PIECES = [
    "<",
    ">",
    '"',
    "'",
    "&",
    "</",
    "-->",
    "<!--",
    "script",
    "onerror=",
    "{{",
    "}}",
    "{%",
    "]]>",
    "=",
    "\\",
]
PIECES += ["</title>", "</style>", "javascript:", "&lt;", "&#60;", "\u2028", "é", " ", "a", "${x}", HOSTILE]
NO_SHRINKING = (Phase.explicit, Phase.generate)  # a page takes seconds
TEXTS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=8).map("".join)


class Elements(HTMLParser):
    """The elements of a page with their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))


def structure(page: Elements) -> list[tuple[str, frozenset[str]]]:
    """The elements in their order, and which attributes each has."""
    return [(tag, frozenset(attributes)) for tag, attributes in page.elements]


def links(page: Elements) -> Iterator[str]:
    """Where the page leads to and what it loads."""
    for _, attributes in page.elements:
        yield from (str(attributes[name]) for name in ("href", "src", "action") if name in attributes)


def results(folder: Path, text: str) -> Path:
    """A run with a cell whose every name is that text."""
    changes: dict[str, Any] = {
        "warnings": [{"type": text, "message": text, "hint": text}],
        "machine": {"hostname": text, "kernel": text, text: text},
        "adapter": text,
        "adapter_facts": {"name": text, text: text},
        "threads": {"client": [{"tid": 1, "name": text, "role": text, "policy": text, "cpus": [0]}]},
        "hosts": {"component": text},
        "conditions": {"asked": {"settings": {text: text}, "load": {text: text}}},
    }
    write_cell(folder / "cell", Made(id=text, samples=40, axes={text: text}, changes=changes))
    about = {"campaign": text, "description": text, "cells": ["cell"], "started": "2026-11-01T09:00:00Z"}
    write_run(folder, about, None)
    return folder


@settings(
    max_examples=12,
    deadline=None,
    phases=NO_SHRINKING,
)
@given(text=TEXTS)
def test_reports(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    plain, hostile = (
        Elements(
            report.write(
                results(tmp_path_factory.mktemp("r") / "machine" / "campaign" / "run", name),
                tmp_path_factory.mktemp("p") / "report.html",
            ).read_text()
        )
        for name in ("plain", text)
    )
    assert structure(hostile) == structure(plain)
    assert all(link.startswith("#") for link in links(hostile))


@settings(
    max_examples=4,
    deadline=None,
    phases=NO_SHRINKING,
)
@given(text=TEXTS)
def test_sites(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    pages = []
    for name in ("plain", text):
        folder = tmp_path_factory.mktemp("s")
        results(folder / "results" / "machine" / "campaign" / "run", name)
        assert cli.invoke(["site", str(folder / "results"), "-o", str(folder / "site")]) == 0
        made = [*folder.glob("site/*.html"), *folder.glob("site/cells/*.html")]
        assert len(made) == 3
        pages.append([Elements(path.read_text()) for path in sorted(made)])
    for plain, hostile in zip(*pages, strict=True):
        assert structure(hostile) == structure(plain)
        assert all(
            link.startswith(("#", "cells/", "../", "index", "side", "reports/")) for link in links(hostile)
        )
