"""A machine, this one or one over SSH → its files, shells, locks, control groups and threads."""
