"""A cell → its data, stored. Its sources (source.py): probes, cyclictest, an attached program."""
