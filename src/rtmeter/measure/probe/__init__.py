"""Probes as files and as processes: found, placed on a machine, started, watched, ended."""
