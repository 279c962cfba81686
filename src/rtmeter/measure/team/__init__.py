"""Cells that several processes of one adapter measure together: of a chain, of a discovery."""
