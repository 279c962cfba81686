"""Folders of results, and questions → tables, verdicts and comparisons: what ``import rtmeter`` gives, and
what the command line prints."""

from rtmeter.api.comparisons import Comparisons
from rtmeter.api.results import Results, read
from rtmeter.api.verdicts import CellVerdict

__all__ = ["CellVerdict", "Comparisons", "Results", "read"]
