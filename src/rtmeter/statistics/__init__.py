"""Arrays of nanoseconds → numbers, and how far they can be trusted: pure functions, no files, no screens."""
