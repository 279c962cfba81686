"""Stands before the pandas that a test has: an installed rtmeter has none. PyArrow loads it wherever it is,
which takes longer than the rest of what starts with rtmeter."""

raise ImportError("rtmeter needs no pandas")
