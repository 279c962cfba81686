"""Two network namespaces with a cable between them, made for one test and removed after it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest


@dataclass(frozen=True)
class Pair:
    """Names of the namespaces, of the device in each, and their addresses."""

    left: str
    right: str
    left_device: str
    right_device: str
    left_address: str = "10.99.0.1"
    right_address: str = "10.99.0.2"


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


@contextmanager
def two_namespaces() -> Iterator[Pair]:
    """Skips the test where namespaces cannot be made."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root, and the program ip")
    tag = f"rtm{os.getpid() % 100_000}"
    pair = Pair(f"{tag}-left", f"{tag}-right", f"{tag}l", f"{tag}r")
    try:
        try:
            ip("netns", "add", pair.left)
            ip("netns", "add", pair.right)
            cable = ("type", "veth", "peer", "name", pair.right_device, "netns", pair.right)
            ip("link", "add", pair.left_device, "netns", pair.left, *cable)
        except subprocess.CalledProcessError as error:
            pytest.skip(f"network namespaces cannot be made here: {error.stderr.strip()}")
        ends = (
            (pair.left, pair.left_device, pair.left_address),
            (pair.right, pair.right_device, pair.right_address),
        )
        for namespace, device, address in ends:
            ip("-n", namespace, "address", "add", f"{address}/24", "dev", device)
            for name in ("lo", device):
                ip("-n", namespace, "link", "set", name, "up")
        yield pair
    finally:
        for namespace in (pair.left, pair.right):
            subprocess.run(["ip", "netns", "delete", namespace], check=False, capture_output=True)


@contextmanager
def quiet_network() -> Iterator[list[str]]:
    """A command that runs another in a network where nobody else is; none where that takes privileges."""
    if os.geteuid() != 0:
        yield []
        return
    with two_namespaces() as pair:
        yield ["ip", "netns", "exec", pair.left]


@contextmanager
def multicast_network() -> Iterator[list[str]]:
    """A command that runs another where multicast to LCM's group comes back, whatever happens to this
    machine's network meanwhile; none where that takes privileges, and a route leads there.
    """
    if os.geteuid() == 0:
        with two_namespaces() as pair:
            ip("-n", pair.left, "route", "add", "224.0.0.0/4", "dev", pair.left_device)
            yield ["ip", "netns", "exec", pair.left]
        return
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        if sender.connect_ex(("239.255.76.67", 7667)) != 0:
            pytest.skip("no route leads to LCM's multicast group")
    yield []


def lose_link_for_a_while(pair: Pair, lost: Callable[[], int], *, recovers: bool = True) -> None:
    """Takes the link down until replies are lost, and up until none is any more, or for a while if the
    middleware never ``recovers``.

    ``lost`` waits for the next progress of the client, a quarter of a second, and tells how many were lost.
    """
    ip("-n", pair.left, "link", "set", pair.left_device, "down")
    while lost() == 0:
        pass
    ip("-n", pair.left, "link", "set", pair.left_device, "up")
    seen = [lost() for _ in range(8)]
    while (seen[-1] == seen[-2]) != recovers and len(seen) < 200:  # one that stands still tells of none, too
        seen.append(lost())
    assert (seen[-1] == seen[-2]) == recovers, seen
