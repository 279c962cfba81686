"""The name of a published table → its rows, its columns, and where it was published."""

from rtmeter.campaign.published.tables import PublishedTable, names, table

__all__ = ["PublishedTable", "names", "table"]
