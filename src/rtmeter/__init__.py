"""Measures how punctual a robot's middleware is, and judges whether it meets its deadline.

From a notebook or a test (docs/notebook.md)::

    import rtmeter

    results = rtmeter.read("results")
    results.cells.to_pandas()
    results.verdict(deadline="1ms", miss_ratio=1e-6)

The names below are all that is public; nothing is imported before one of them is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rtmeter.api.comparisons import Comparisons
    from rtmeter.api.results import Results, read
    from rtmeter.api.verdicts import CellVerdict
    from rtmeter.errors import RtmeterError
    from rtmeter.judge.explained import CellExplanation
    from rtmeter.model import Requirement, Verdict
    from rtmeter.values import version

__all__ = [
    "CellExplanation",
    "CellVerdict",
    "Comparisons",
    "Requirement",
    "Results",
    "RtmeterError",
    "Verdict",
    "read",
    "version",
]

_HOMES = {
    "CellExplanation": "judge.explained",
    "CellVerdict": "api.verdicts",
    "Comparisons": "api.comparisons",
    "Requirement": "model",
    "Results": "api.results",
    "RtmeterError": "errors",
    "Verdict": "model",
    "read": "api.results",
    "version": "values",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'rtmeter' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"rtmeter.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
