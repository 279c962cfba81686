"""A campaign file, or options → the cells that are to be measured, in running order."""
