"""The samples of cells → plots, as specifications and as pictures."""
