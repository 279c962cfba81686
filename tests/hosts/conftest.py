"""The two hosts that the tests of this folder run on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from two_hosts import Hosts


def _hosts(folder: Path, *, another_machine: bool) -> Iterator[Hosts]:
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    hosts = Hosts(folder)
    try:
        hosts.up(another_machine=another_machine)
        yield hosts
    finally:
        hosts.down()


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    """The second host passes for another machine."""
    yield from _hosts(tmp_path_factory.mktemp("hosts"), another_machine=True)


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Hosts]:
    """The second host, which passes for another machine, for one test: it may lose its power."""
    yield from _hosts(tmp_path, another_machine=True)


@pytest.fixture
def one_machine(tmp_path: Path) -> Iterator[Hosts]:
    """Both are namespaces of one machine."""
    yield from _hosts(tmp_path, another_machine=False)
