"""Many independent runs of a function, each with a random generator of its own."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np

Run = Callable[..., Any]
"""A function at the top of a module, of a generator and of what is simulated; its result is small."""


class Simulation:
    """Runs simulations, in so many processes (0: in this one), which does not change what they find: a run's
    generator follows from the seed, what is simulated and the run's number. The same simulation asked for
    again, by a test of another claim, is not repeated."""

    def __init__(self, seed: int, processes: int) -> None:
        self._seed = seed
        self._processes = processes
        self._pool = ProcessPoolExecutor(processes, get_context("spawn")) if processes else None
        self._known: dict[tuple[Any, ...], list[Any]] = {}

    def __call__(self, run: Run, runs: int, *about: Any) -> list[Any]:
        """The results of so many runs of ``run(generator, *about)``."""
        key = (run, runs, *about)
        if key not in self._known:
            self._known[key] = self._results(run, runs, about)
        return self._known[key]

    def close(self) -> None:
        """Ends the processes."""
        if self._pool:
            self._pool.shutdown(cancel_futures=True)

    def _results(self, run: Run, runs: int, about: tuple[Any, ...]) -> list[Any]:
        root = np.random.SeedSequence([self._seed, zlib.crc32(f"{run.__name__}{about}".encode())])
        one = partial(_one, run, about)
        if self._pool is None:
            return list(map(one, root.spawn(runs)))
        share = max(1, runs // (8 * self._processes))
        return list(self._pool.map(one, root.spawn(runs), chunksize=share))


def _one(run: Run, about: tuple[Any, ...], seed: np.random.SeedSequence) -> Any:
    return run(np.random.default_rng(seed), *about)
