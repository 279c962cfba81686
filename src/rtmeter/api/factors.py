"""What a factor does, as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rtmeter.api.comparisons import finite, number
from rtmeter.judge.factors import FactorEffects, LevelEffects
from rtmeter.statistics.effects import Effect
from rtmeter.statistics.halving import RATIO


def effects_json(found: FactorEffects) -> dict[str, Any]:
    """As ``rtmeter compare --factor --json`` prints it: times in nanoseconds, ``lost`` where a quantile is a
    lost release, null where there is no number."""
    keys = ("factor", "reference", "quantity", "deadline_ns", "confidence")
    shown = {key: getattr(found, key) for key in keys}
    lists = {key: list(getattr(found, key)) for key in ("others", "left_out")}
    doubts = [asdict(doubt) for doubt in found.doubts]
    return shown | {"levels": [_level(one) for one in found.levels]} | lists | {"doubts": doubts}


def _level(one: LevelEffects) -> dict[str, Any]:
    return {
        "level": one.level,
        "said": one.said,
        "matched": one.matched,
        "pairs": one.pairs,
        "confounded": list(one.confounded),
        "repeats_needed": one.repeats,
        "effects": [_effect(each) for each in one.effects],
        "interactions": [asdict(each) for each in one.interactions],
    }


def _effect(one: Effect) -> dict[str, Any]:
    ends = {name: finite(getattr(one, name)) for name in ("times", "lower", "upper")}
    return {
        "quantity": one.quantity,
        "reference": number(one.reference),
        "level": number(one.level),
        "of": "odds" if one.quantity == RATIO else "quotient",
        **ends,
        "level_interval": None if one.level_interval is None else [finite(end) for end in one.level_interval],
        "said": one.said,
        "repeats_needed": one.repeats,
        "repeats_for_seen": one.repeats_seen,
        "words": one.words,
    }
