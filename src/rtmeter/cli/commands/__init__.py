"""One file a command: its options, its example, and what it calls."""
