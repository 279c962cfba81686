"""What tests of an archive's rows share."""

from __future__ import annotations

import pytest
from archives import write_cells

from rtmeter.results.cells import StoredCell, find_cells


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> StoredCell:
    """One cell of one rig, of 200 releases."""
    (folder,) = write_cells(tmp_path_factory.mktemp("results"), rigs=1, days=1, samples=200)
    (found,) = find_cells(folder)
    return found
