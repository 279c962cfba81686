"""A cell → its data, stored. Its sources (source.py): probes, alone or together, cyclictest, a program."""
