"""The options of a command → what it calls, prints and writes: one file a command, with its example."""
