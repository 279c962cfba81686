"""Pure functions of samples: no files, no screens."""
