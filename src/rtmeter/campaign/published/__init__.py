"""The key ``published`` of a campaign (spec/campaign.md): a table, its rows, how its source measured."""

from rtmeter.campaign.published.asked import Published
from rtmeter.campaign.published.tables import PublishedTable, names, table

__all__ = ["Published", "PublishedTable", "names", "table"]
