"""A run while it goes on → what its files have shown so far."""
