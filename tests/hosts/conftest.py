"""The two hosts that the tests of this folder run on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from namespaces import PLANTED_NS, Hosts


def _hosts(folder: Path, ahead_s: int) -> Iterator[Hosts]:
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    hosts = Hosts(folder)
    try:
        hosts.up(ahead_s)
        yield hosts
    finally:
        hosts.down()


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    """The second host's monotonic clock is PLANTED_NS ahead."""
    yield from _hosts(tmp_path_factory.mktemp("hosts"), PLANTED_NS // 10**9)


@pytest.fixture
def same_clock_hosts(tmp_path: Path) -> Iterator[Hosts]:
    """Both namespaces share the machine's clock."""
    yield from _hosts(tmp_path, 0)
