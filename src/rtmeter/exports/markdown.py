"""A summary of cells in Markdown, for the page of a CI job."""

from __future__ import annotations

from pathlib import Path

from rtmeter.judge import answer
from rtmeter.judge.entries import by_condition
from rtmeter.judge.points import in_points
from rtmeter.results import words
from rtmeter.results.overview import CellEntry, cell_entries, refuse

_ICONS = {
    "error": "❗",
    "fail": "❌",
    "inconclusive": "❔",
    "unfinished": "⏳",
    "unjudged": "⚪",
    "pass": "✅",
}


def write(path: Path, out: Path) -> list[str]:
    """Writes the answer, what limits it, and a row a condition, the worst first."""
    cells = sorted(by_condition(cell_entries(path)), key=lambda cell: cell.badness)
    refuse([cell.damage for cell in cells if cell.damage])
    found = answer.answer(cells)
    lines = [f"## {_ICONS[found.outcome]} {answer.NAMES[found.outcome]}: {_text(found.headline)}", ""]
    for title, sentences in (("Asked", found.asked), ("Limits", found.limits), ("Next", found.next)):
        lines += [f"- **{title}:** {_text(' '.join(sentences))}"] if sentences else []
    thing = answer.things(cells).removesuffix("s")
    repeated = any(cell.repeats for cell in cells)
    tail = "worst p99.9" if repeated else "p99.9"
    lines += ["", f"| verdict | {thing} | deadline, us | missed | n | {tail}, us | max, us | why |"]
    lines += ["|---|---|--:|--:|--:|--:|--:|---|"]
    lines += [_row(cell) for cell in cells]
    lines += ["", "Of the judged quantity, per release: lost ones count as later than anything."]
    lines += [words.OF_ALL_RUNS, ""] if repeated else [""]
    out.write_text("\n".join(lines), encoding="utf-8")
    return []


def _row(cell: CellEntry) -> str:
    judged, record = cell.judged, cell.record
    verdict = record.verdict if record else None
    deadline = words.round_us(record.deadline_ns) if record and record.deadline_ns else words.NONE
    columns = [
        f"{_ICONS[cell.outcome]} {answer.NAMES[cell.outcome]}",
        cell.id,
        deadline,
        verdict.missed if verdict and verdict.n else words.NONE,
        words.count(cell.n),
        words.us(judged.p99_9_ns) if judged else words.NONE,
        words.us(judged.max_ns) if judged else words.NONE,
        " ".join(in_points(cell)),
    ]
    return f"| {' | '.join(map(_text, columns))} |"


def _text(text: str) -> str:
    """Plain text: nothing in it is markup, and it stays in its place of a table."""
    for mark in "\\`*_[]<>|#":
        text = text.replace(mark, f"\\{mark}" if mark not in "<>" else {"<": "&lt;", ">": "&gt;"}[mark])
    return " ".join(text.split())
