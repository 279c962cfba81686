"""What a sample log takes on disk, and what other levels of zstd would make of it. Bound: 3 bytes a value.

Without an argument the log is made by rtmeter-bench-log_size (`make build-bench`): wake-ups at 1 kHz with
log-normal latencies around 60 us. With one, it is a log that a probe wrote.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from pathlib import Path

import pyarrow as pa

from common import ROOT, machine_line, save
from rtmeter.samples import LogReader
from rtmeter.samples.frames import FILE_HEAD_BYTES, HEAD_BYTES, Damage, scan

BINARY = ROOT / "build" / "release" / "bench" / "rtmeter-bench-log_size"
LEVELS = (-3, -1, 1, 2, 3, 4, 5, 6, 9, 12)
ROUNDS = 5


def contents(path: Path, columns: int) -> list[bytes]:
    """The row frames' contents, decompressed."""
    with path.open("rb") as file:
        frames = [
            item for item in scan(file, FILE_HEAD_BYTES, path.stat().st_size) if not isinstance(item, Damage)
        ]
    rows = [(frame.row_count, payload) for frame, payload in frames if frame.kind == "R"]
    return [pa.decompress(p, decompressed_size=n * columns * 8, codec="zstd", asbytes=True) for n, p in rows]


def at_level(level: int, frames: list[bytes]) -> tuple[int, float]:
    """Bytes in the file, and the least seconds of some rounds."""
    codec = pa.Codec("zstd", compression_level=level)
    seconds = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        size = sum(codec.compress(frame).size + HEAD_BYTES for frame in frames)
        seconds.append(time.perf_counter() - begin)
    return size, min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("log", type=Path, nargs="?")
    parser.add_argument("--binary", type=Path, default=BINARY)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log = args.log or Path(folder) / "made.rtlog"
        if args.log is None:
            subprocess.run([args.binary, log], check=True, stdout=subprocess.DEVNULL, timeout=60)
        reader = LogReader(log)
        values = reader.rows * len(reader.columns)
        frames = contents(log, len(reader.columns))
        levels = {level: at_level(level, frames) for level in LEVELS}
        size = log.stat().st_size
    print(machine_line())
    print(f"\n{reader.rows:,} rows of {len(reader.columns)} values in {len(frames)} frames: {size:,} bytes, ")
    print(f"{size / reader.rows:.2f} a row, {size / values:.2f} a value (bound: 3)\n")
    print("| zstd level | bytes a row | compression, a row |\n|---|---|---|")
    for level, (file_bytes, seconds) in levels.items():
        print(f"| {level} | {file_bytes / reader.rows:.3f} | {seconds / reader.rows * 1e9:.0f} ns |")
    result = {"rows": reader.rows, "values": values, "bytes": size}
    by_level = {level: {"bytes": b, "seconds": s} for level, (b, s) in levels.items()}
    print(f"\n{save('log_size', result | {'levels': by_level})}")


if __name__ == "__main__":
    main()
