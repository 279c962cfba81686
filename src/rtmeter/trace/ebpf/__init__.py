"""Threads → what the kernel tells of them, by programs of ours within it: some 60 bytes an event, no text."""
