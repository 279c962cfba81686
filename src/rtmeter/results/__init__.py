"""What was measured → cells on the disk; cells on the disk → their records, a table of
them, and the answers of one SELECT."""
