"""A program that nobody changed → its cell: looked at, attached to, recorded by the kernel's events."""
