"""All tests, whatever fails on the way: ctest, then pytest's; every failure is listed at the end.

``python tools/run_tests.py [FILES...]``: without files, all; a C++ file stands for its tests. WORKERS: how
many run at once. What failed is left in build/tests/failed.txt too, one a line, and how long each part and
the longest tests took in build/tests/seconds.txt. Exits with 1 if anything failed.

``RESUME=1``: what passed under pytest in an earlier run of the same sources, at the same size, is left out.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"
sys.path.insert(0, str(TESTS))

from order import is_alone  # noqa: E402 (of the tests)

PYTEST = str(Path(sys.executable).parent / "pytest")
OUT = ROOT / "build" / "tests"
LOG = ROOT / "build" / "release" / "Testing" / "Temporary" / "LastTest.log"
SUITE = re.compile(r"^(?:TYPED_)?TEST(?:_[FP])?\((\w+), *\w+\)", re.MULTILINE)
NO_TESTS = 5  # pytest's exit code


def main(files: list[str]) -> int:
    sources = [file for file in files if file.endswith(".cpp")]
    scripts = [file for file in files if file not in sources]
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "seconds.txt").write_text("")
    workers = os.environ.get("WORKERS") or str(3 * len(os.sched_getaffinity(0)))
    keep_passed()
    failed: list[str] = []
    with nullcontext() if files else compiled():
        if sources or not files:
            only = ["-R", names_of(sources)] if sources else []
            failed += run("ctest", ["ctest", "--preset", "test", "-j", workers, *only, "--output-junit"])
    if scripts or not files:
        side_by_side = ["-n", workers, "--dist", "loadfile", "--no-loadscope-reorder"]
        failed += run("pytest", [PYTEST, *scripts, "-m", "not alone", *side_by_side, "--junitxml"])
        alone = scripts or [str(file) for file in sorted(TESTS.rglob("test_*.py")) if is_alone(file)]
        failed += run("pytest-alone", [PYTEST, *alone, "-m", "alone", "--junitxml"])
    reduced = {line for line in said_of(LOG).splitlines() if line.startswith("[reduced]")}
    print(*sorted(reduced), sep="\n")
    (OUT / "failed.txt").write_text("".join(f"{line}\n" for line in failed))
    print(f"\n{len(failed)} failed" if failed else "\nall passed")
    print(*failed, sep="\n")
    return min(len(failed), 1)


def keep_passed() -> None:
    """What passes is written down as it does, and is begun anew unless RESUME is set."""
    size = "full" if os.environ.get("RTMETER_FULL") == "1" else "reduced"
    passed = OUT / "passed" / f"{size}-{sources()}.txt"
    if os.environ.get("RESUME") != "1":
        passed.unlink(missing_ok=True)
    os.environ["TESTS_PASSED"] = str(passed)


def sources() -> str:
    """Of the commit, of what was changed since, and of files that git does not know yet."""
    others = ["ls-files", "-z", "--others", "--exclude-standard"]
    *said, new = [
        subprocess.run(["git", *words], cwd=ROOT, stdout=subprocess.PIPE, check=False).stdout
        for words in (["rev-parse", "HEAD"], ["diff", "HEAD"], others)
    ]
    said.append(new)
    for file in [ROOT / os.fsdecode(name) for name in new.split(b"\0") if name]:
        with suppress(OSError):  # one that may not be read, or has gone meanwhile
            said += [file.read_bytes()] if file.is_file() else []
    return hashlib.sha256(b"".join(said)).hexdigest()[:16]


@contextmanager
def compiled() -> Iterator[None]:
    """Compiles pytest's files while the block runs, which waits more than it computes; else each worker would
    do it for itself.
    """
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([PYTEST, "--collect-only", "-q"], cwd=ROOT, **silent):
        yield


def run(name: str, command: list[str]) -> list[str]:
    """What failed; the command ends in the option that takes a file for its results."""
    results = OUT / f"{name}.xml"
    results.unlink(missing_ok=True)
    began = time.monotonic()
    code = subprocess.run([*command, str(results)], cwd=ROOT, check=False).returncode
    try:
        cases = list(ElementTree.parse(results).iter("testcase"))
    except (OSError, ElementTree.ParseError):
        cases = []
    longest = sorted(((float(case.get("time", 0)), title(case)) for case in cases), reverse=True)[:5]
    with (OUT / "seconds.txt").open("a") as seconds:
        for took, what in [(time.monotonic() - began, f"{name}: all"), *longest]:
            seconds.write(f"{took:6.0f} s  {what}\n")
    failed = [f"{name}: {title(case)}" for case in cases if is_failed(case)]
    if not failed and code not in (0, NO_TESTS):
        failed = [f"{name}: ended with exit code {code}"]
    return failed


def is_failed(case: ElementTree.Element) -> bool:
    return any(case.find(tag) is not None for tag in ("failure", "error"))


def title(case: ElementTree.Element) -> str:
    """As pytest takes it: the file and the name; of a C++ test the name."""
    folder, name = case.get("classname", ""), case.get("name", "")
    return name if folder == name else f"{folder.replace('.', '/')}.py::{name}"


def names_of(sources: list[str]) -> str:
    """A regular expression of the tests that the C++ files define."""
    suites = {suite for source in sources for suite in SUITE.findall(Path(source).read_text())}
    return rf"(^|/)({'|'.join(sorted(suites))})(\.|/)"


def said_of(log: Path) -> str:
    return log.read_text(errors="replace") if log.exists() else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
