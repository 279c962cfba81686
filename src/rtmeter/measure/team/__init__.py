"""A chain or a discovery → its cell, measured by several processes of one adapter together."""
