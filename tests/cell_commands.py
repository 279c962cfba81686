"""Every command that reads cells, on a run of two: for tests of what each says of a damaged one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rtmeter.exports import FORMATS, OF_QUANTITY
from rtmeter.plots.plots import KINDS
from rtmeter.results import store

OF_NO_CELL = {
    **dict.fromkeys(("check", "check-adapter", "adapters", "bundle", "restore"), "looks at the machine"),
    **dict.fromkeys(("import", "graph"), "reads the files of other tools"),
    "attach": "measures into a folder of its own",
}
"""Commands that read no cell, and why."""

OF_TWO_CELLS = ("shift", "waterfall")
"""Kinds of plots besides KINDS."""


@dataclass(frozen=True)
class Tried:
    """``cell`` and ``other`` of one run of the folder ``results``, of which other is called ``plain`` and is
    like cell but for the factor ``load``; ``out`` is a folder for what is written."""

    results: Path
    cell: Path
    other: Path
    out: Path

    @property
    def run(self) -> Path:
        return self.cell.parent

    def of_records(self) -> dict[str, list[str]]:
        """Commands that show what cell.json says, and look at no data."""
        out, run, campaign = str(self.out / "out"), str(self.run), str(self.run / store.CAMPAIGN)
        log = self.out / "x.rtlog"
        log.write_bytes(b"")
        return {
            "export markdown": ["export", str(self.cell), "--format", "markdown", "-o", f"{out}.md"],
            "summary": ["summary", str(self.results)],
            "summary --json": ["summary", str(self.cell), "--json"],
            "site --no-reports": ["site", str(self.results), "-o", f"{out}-records", "--no-reports"],
            "published": ["published", str(self.cell)],
            "watch": ["watch", run, "--once"],
            "sql cells": ["sql", "SELECT count(*) FROM cells", str(self.results)],
            "plot against": ["plot", run, "--kind", "against", "--over", "load", "-o", f"{out}.svg"],
            "recover": ["recover", str(log), "-o", str(self.cell)],
            "measure": ["measure", "wakeup", "--adapter", "fake", "--out", str(self.cell)],
            "run --resume": ["run", campaign, "--resume", "--out", str(self.results)],
        }

    def of_data(self) -> dict[str, list[str]]:
        """Commands that read the data of the cell."""
        out, campaign = str(self.out / "out"), str(self.run / store.CAMPAIGN)
        cell, other, run = str(self.cell), str(self.other), str(self.run)
        found = {
            f"export {form}": ["export", cell, "--format", form, "-o", f"{out}.{form}"]
            for form in (*FORMATS, *OF_QUANTITY)
            if form != "markdown"
        }
        plots = {kind: [cell] for kind in KINDS if kind not in ("against", "triptych")}
        plots |= {kind: [other, cell] for kind in OF_TWO_CELLS}
        found |= {
            f"plot {kind}": ["plot", *cells, "--kind", kind, "-o", f"{out}.svg"]
            for kind, cells in plots.items()
        }
        return found | {
            "verdict": ["verdict", cell, "--deadline", "1ms"],
            "verdict --repeats": ["verdict", run, "--repeats", "--deadline", "1ms"],
            "compare": ["compare", cell, other],
            "compare with it": ["compare", other, cell],
            "compare --factor": ["compare", run, "--factor", "load"],
            "layers": ["layers", run, "--floor", "plain"],
            "report": ["report", run, "-o", f"{out}.html"],
            "site": ["site", str(self.results), "-o", f"{out}-site"],
            "explain": ["explain", cell],
            "sql samples": ["sql", "SELECT count(*) FROM samples", run],
            "plan --like": ["plan", campaign, "--like", cell],
            "archive add": ["archive", "add", run, "--to", f"{out}-archive"],
            "archive add --with-samples": ["archive", "add", run, "--with-samples", "--to", f"{out}-samples"],
        }

    def of_both(self) -> dict[str, list[str]]:
        """All commands that read cells."""
        return self.of_records() | self.of_data()
