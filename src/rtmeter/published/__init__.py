"""Values that others published, to be set beside those that a campaign measures.

A campaign's key ``published`` (spec/campaign.md) names a table, says which of its rows belongs to which
cells, and under which conditions its source measured.
"""

from rtmeter.published.asked import Published
from rtmeter.published.beside import Beside, Entry, Line, Part, Time, Value, beside, has_unit, label
from rtmeter.published.held import Unmet
from rtmeter.published.tables import Table, names, table

__all__ = [
    "Beside",
    "Entry",
    "Line",
    "Part",
    "Published",
    "Table",
    "Time",
    "Unmet",
    "Value",
    "beside",
    "has_unit",
    "label",
    "names",
    "table",
]
