"""What was measured → cells on the disk; cells on the disk → their records, and a table of them."""
