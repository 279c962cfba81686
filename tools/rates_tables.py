"""Writes the simulated rates that the full test left (build/rates.json) into the tables of docs/.

docs/simulated-rates.md has every rate, docs/method-judgement.md the worst case of each claim, between its
two markers. With --beside the page keeps the claims that were not simulated this time, and their seeds.
"""

from __future__ import annotations

import argparse
import json
import re
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ALL, WORST = ROOT / "docs" / "simulated-rates.md", ROOT / "docs" / "method-judgement.md"
BEGIN, END = "<!-- simulated rates: begin -->\n", "<!-- simulated rates: end -->\n"

Rate = dict[str, Any]


def bound(rate: Rate) -> str:
    return f"{'at least' if rate['at_least'] else 'at most'} {rate['bound']:g}"


def row(rate: Rate, first: str) -> str:
    share = rate["hits"] / rate["runs"]
    holds = "yes" if rate["holds"] else "**no**"
    return f"| {first} | {rate['runs']:,} | {share:.4f} | {rate['limit']:.4f} | {bound(rate)} | {holds} |"


def worst(rates: list[Rate]) -> Rate:
    """The rate that is nearest to its bound, or furthest beyond it; of limits that a page shows alike, by
    itself."""

    def beyond(rate: Rate) -> tuple[float, float]:
        sign = 1 if rate["at_least"] else -1
        return sign * (rate["limit"] - rate["bound"]), sign * rate["hits"] / rate["runs"]

    return min(rates, key=beyond)


def written(page: str, known: set[str]) -> list[Rate]:
    """The rates of the page whose claims are not among those known."""
    kept = []
    for heading, rows in re.findall(r"^## (.+)\n\n.*\n.*\n((?:\|.*\n)+)", page, re.M):
        claim = f"{heading[0].lower()}{heading[1:]}"
        if claim in known:
            continue
        for line in rows.splitlines():
            case, runs, share, limit, side, holds = (part.strip() for part in line.strip("|").split("|"))
            count = int(runs.replace(",", ""))
            kept.append(
                {
                    "claim": claim,
                    "case": case,
                    "runs": count,
                    "hits": round(float(share) * count),
                    "limit": float(limit),
                    "at_least": side.startswith("at least"),
                    "bound": float(side.split()[-1]),
                    "holds": holds == "yes",
                }
            )
    return kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("rates", type=Path, nargs="?", default=ROOT / "build" / "rates.json")
    parser.add_argument("--beside", action="store_true", help="keep what the page has of other claims")
    given = parser.parse_args()
    rates: list[Rate] = json.loads(given.rates.read_text())
    seeds = ", ".join(str(seed) for seed in sorted({rate["seed"] for rate in rates}))
    today = f"{datetime.now(UTC).date()}, RTMETER_SEED={seeds}"
    about = today
    if given.beside:
        page = ALL.read_text(encoding="utf-8")
        (before,) = re.findall(r"do not edit\. (.*)\. What is simulated", page)
        known = {rate["claim"] for rate in rates}
        about = f"{before}; of {today}: {', '.join(sorted(known))}"
        rates += written(page, known)
    rates.sort(key=lambda rate: rate["claim"])
    claims = [(claim, list(group)) for claim, group in groupby(rates, lambda rate: rate["claim"])]

    head = "| runs | rate | limit | bound | holds |\n|---|---|---|---|---|---|"
    text = [
        "# Simulated rates",
        f"Written by `make rates`; do not edit. {about}. What is simulated, and what the limit is: "
        "[how a verdict is reached](method-judgement.md#simulated-rates).",
    ]
    for claim, group in claims:
        rows = "\n".join(row(rate, rate["case"]) for rate in group)
        text.append(f"## {claim[0].upper()}{claim[1:]}\n\n| case {head}\n{rows}")
    ALL.write_text("\n\n".join(text) + "\n", encoding="utf-8")

    rows = "\n".join(row(worst(group), f"{claim}: {worst(group)['case']}") for claim, group in claims)
    table = f"{about}\n\n| claim: worst case {head}\n{rows}\n"
    before, rest = WORST.read_text(encoding="utf-8").split(BEGIN)
    WORST.write_text(before + BEGIN + table + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
