"""Folders of results, and questions → tables, verdicts and comparisons: what ``import rtmeter`` gives, and
what the command line prints."""
