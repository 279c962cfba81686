"""An adapter's name and a config → its probe, a process: found, placed on a machine, started, watched,
ended."""
