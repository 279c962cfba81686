"""A cell → its data, stored. Sources of a cell have one interface (source.py): probes, and cyclictest."""
