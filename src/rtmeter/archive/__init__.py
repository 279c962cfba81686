"""From the cells of one machine to those of a fleet: tables in a folder or an object store, written by many
at once and without a server (spec/archive.md), and what is asked of them (docs/archive.md).

In: cells with their samples (rtmeter.api, rtmeter.results), and archives by their place. Out: rows in tables;
distributions of groups, verdicts over them, regressions.
"""
