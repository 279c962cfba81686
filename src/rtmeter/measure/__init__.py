"""A cell → its data, stored. Its sources (source/): probes, alone or together, cyclictest, a program."""
