"""The pages that answer a question each: their commands work as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import ROOT, run_page, shell_blocks

DOCS = ROOT / "docs"
QUESTIONS = (
    "is-it-good-enough",
    "is-fifo-worth-it",
    "is-a-better-than-b",
    "what-do-i-tell-my-boss",
    "why-was-it-late",
    "how-long-must-i-measure",
    "where-does-it-break",
)


def test_the_index_opens_with_them() -> None:
    index = (DOCS / "index.md").read_text()
    assert [index.index(f"({name}.md)") for name in QUESTIONS]
    assert max(index.index(f"({name}.md)") for name in QUESTIONS) < index.index("(tutorial.md)")


@pytest.mark.parametrize("name", [name for name in QUESTIONS if name != "where-does-it-break"])  # sweeps
def test_each_has_a_campaign_its_commands_and_what_they_print(name: str) -> None:
    page = (DOCS / f"{name}.md").read_text()
    assert re.search(r"^rtmeter \w+", shell_blocks(DOCS / f"{name}.md", "sh"), re.MULTILINE)
    assert re.search(r"^```\n.*?^```$", page, re.MULTILINE | re.DOTALL), "what they print"
    asks = [page, *((DOCS / link).read_text() for link in re.findall(r"\(([\w-]+\.md)\)", page))]
    named = {file for text in asks for file in re.findall(r"campaigns/([\w-]+\.yaml)", text)}
    assert named and all((ROOT / "campaigns" / file).is_file() for file in named)


def test_how_long_is_told_before_anything_is_measured(tmp_path: Path) -> None:
    printed = run_page(DOCS / "how-long-must-i-measure.md", tmp_path, cwd=ROOT)
    assert "2,995" in printed
    assert "all releases, warm-up included: 48.8 min" in printed


@pytest.mark.full_only("measures for ten minutes")
@pytest.mark.timeout(3000)
def test_the_others_answer_from_one_campaign(tmp_path: Path) -> None:
    """In the order of the index: the first measures what the next ones look at."""
    (tmp_path / "campaigns").symlink_to(ROOT / "campaigns")
    for place, name in enumerate(name for name in QUESTIONS if name != "how-long-must-i-measure"):
        home = tmp_path / str(place)
        home.mkdir()
        page = DOCS / f"{name}.md"
        assert "rtmeter" in shell_blocks(page, "sh")
        assert run_page(page, home, cwd=tmp_path)
    assert (tmp_path / "answers.html").stat().st_size > 100_000
