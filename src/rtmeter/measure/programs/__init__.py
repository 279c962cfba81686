"""Cells of a program that nobody changed: looked at, attached to, recorded by the kernel's events."""
