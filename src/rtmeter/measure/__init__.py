"""A cell → its data, stored: by a probe, or by a tool that everybody knows."""
