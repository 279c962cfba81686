"""Two measurements set side by side: what differs in their conditions, and in what was measured."""
