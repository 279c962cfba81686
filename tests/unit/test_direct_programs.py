"""bench/direct/ and bench/vs_direct.py: rows of the direct programs, and which adapter each stands beside."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import vs_direct
from common import ROOT
from rtmeter.measure.probe.known_adapters import KNOWN_ADAPTERS

DIRECT = ROOT / "bench" / "direct"

LOOP = """
#include "ping_pong.hpp"

int main(int argc, char** argv) {
  const direct::Plan plan = direct::plan(argc, argv);
  std::puts("12 34");  // as a middleware logs
  std::at_quick_exit([] { std::fputs("ended", stderr); });
  direct::Trips trips(plan);
  trips.ping([&](std::size_t n) {
    std::printf("sent %zu\\n", n);
    if (n != 5) trips.came(n);
  });
}
"""
"""A middleware that brings back at once whatever is sent, but for the last message."""


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("direct")
    (folder / "loop.cpp").write_text(LOOP)
    command = ["g++", "-std=c++17", "-I", DIRECT, folder / "loop.cpp", "-o", folder / "loop"]
    subprocess.run(command, check=True)
    return folder / "loop"


def test_each_message_that_came_is_a_row_and_what_a_middleware_prints_is_none(loop: Path) -> None:
    done = subprocess.run([loop, "ping", "1000000", "6"], capture_output=True, text=True, check=True)
    number, trip = np.loadtxt(done.stdout.splitlines(), dtype=np.int64).T
    assert number.tolist() == [0, 1, 2, 3, 4]
    assert (trip >= 0).all()
    assert "12 34" in done.stderr and "sent 5" in done.stderr
    assert done.stderr.endswith("ended")  # a middleware can be left in order


@pytest.mark.parametrize("middleware", vs_direct.MIDDLEWARES)
def test_each_stands_beside_an_adapter_with_what_its_options_say(middleware: str) -> None:
    adapter = vs_direct.adapter_of(middleware)
    assert adapter in KNOWN_ADAPTERS
    assert vs_direct.program_of(middleware).name == f"rtmeter-direct-{adapter}"
    built = (ROOT / "bench" / "CMakeLists.txt").read_text()
    assert f"direct_program({adapter} " in built or f"direct_rust_program({adapter})" in built


def test_the_direct_program_is_told_the_options_of_its_variant() -> None:
    for middleware, transport in (("ecal", "shm"), ("ecal-udp", "udp")):
        with vs_direct.daemon(middleware) as environment:
            assert environment["DIRECT_TRANSPORT"] == transport
        assert vs_direct.receive_of(middleware) == "listener"
    assert vs_direct.receive_of("lcm") == "spin"
