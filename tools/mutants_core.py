"""Mutates the core's measurements, one change at a time, and tells which changes its tests do not notice.

A mutant is built apart (build/mutants): only the sources that see the change are compiled again, without
optimisation, and linked with the tests of the core that need no machine. Killed is a mutant that fails a
test, crashes, or does not end; one that does not compile is none. docs/mutants.md keeps score and survivors.
"""

from __future__ import annotations

import argparse
import functools
import random
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "mutants"
TARGETS = [
    *("measure_wakeup.cpp", "measure_one_shot.cpp", "measure_periodic.cpp", "measure_roundtrip.cpp"),
    *("measure_cycle.cpp", "ticks.hpp", "periodic_timer.cpp", "exchange.hpp", "pending.hpp"),
    *("recorder.cpp", "hold.hpp", "progress.hpp", "session.hpp"),
]
TESTS = ["measure_wakeup", "exchange", "timers", "ticks", "pending", "progress", "recorder"]
SLOW = {"recorder.cpp", "hold.hpp"}  # seen by the recorder's tests, which take seconds
COMPILER = ["g++", "-std=c++20", "-O0", "-w", '-DRTMETER_VERSION="0"']
CPU_S, WALL_S, MEMORY = 20, 300, 4 << 30

SWAPS = [
    (r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "), (r" == ", " != "),
    (r" != ", " == "), (r" && ", " || "), (r" \|\| ", " && "), (r" \+ ", " - "), (r" - ", " + "),
    (r" \* ", " / "), (r" / ", " * "), (r" \? (.+) : (.+?)([;,)])", r" ? \2 : \1\3"),
    (r"\btrue\b", "false"), (r"\bfalse\b", "true"), (r"if \(!", "if ("), (r"if \((?!!)", "if (!"),
    (r"\+= ", "-= "), (r"(?<![\w.'])(\d[\d']*)(?![\w.'])", r"(\1 + 1)"),
]  # fmt: skip
STATEMENT = re.compile(
    r"^\s+(?!return|const|auto|case|break|continue|using|static|else|for|if|while)[\w.>*()\[\]+-]+.*;$"
)
DECLARATION = re.compile(r"^\s+(std::|[\w:<>*&, ]+ [\w:]+(;| = |\{|\())")
SKIPPED = re.compile(
    r"^\s*(//|#|static_assert|template|class|struct|enum|using|namespace|case |public|private|\w+:)"
)


class Mutant(NamedTuple):
    file: str
    line: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: `{self.before.strip()}` -> `{self.after.strip() or 'nothing'}`"


def found(sources: Path, file: str) -> Path:
    """In whatever room of the core it lies."""
    return next(sources.rglob(file))


def mutants_of(file: str) -> Iterator[Mutant]:
    for number, line in enumerate(found(ROOT / "core/src", file).read_text().splitlines(), 1):
        code = line.split("  // ")[0]
        if SKIPPED.match(code) or '"' in code or "json" in code.lower() or "Failure" in code:
            continue
        for pattern, other in SWAPS:
            for match in re.finditer(pattern, code):
                after = code[: match.start()] + match.expand(other) + code[match.end() :]
                yield Mutant(file, number, code, after)
        if STATEMENT.match(code) and not DECLARATION.match(code):
            yield Mutant(file, number, code, "")


def compile_(source: Path, into: Path) -> bool:
    includes = [f"-I{WORK / 'src'}", f"-I{ROOT / 'core/include'}", f"-I{ROOT / 'core/tests'}"]
    command: list[str | Path] = [
        *COMPILER,
        f'-DRTMETER_SPEC_DIR="{ROOT / "spec"}"',
        *includes,
        "-MMD",
        "-c",
        source,
        "-o",
        into,
    ]
    return subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0


def sees(dependencies: Path, file: str) -> bool:
    return f"/{file}" in dependencies.read_text()


def build_base() -> None:
    shutil.rmtree(WORK, ignore_errors=True)
    shutil.copytree(ROOT / "core/src", WORK / "src")
    (WORK / "base").mkdir()
    sources = [*(WORK / "src").rglob("*.cpp"), *(ROOT / f"core/tests/{test}_test.cpp" for test in TESTS)]
    for source in sources:
        if not compile_(source, WORK / "base" / f"{source.stem}.o"):
            raise SystemExit(f"{source} does not compile")


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def passes(objects: list[Path], slow: bool) -> bool:
    binary = WORK / "tests"
    subprocess.run(
        ["g++", *objects, "-o", binary, "-lgtest_main", "-lgtest", "-lzstd", "-lpthread"], check=True
    )
    only = [] if slow else ["--gtest_filter=-RecorderTest.*"]
    try:
        run = subprocess.run(
            [binary, "--gtest_brief=1", *only], preexec_fn=limited, timeout=WALL_S, capture_output=True
        )
    except subprocess.TimeoutExpired:
        return False
    return run.returncode == 0


@functools.cache
def seeing(file: str) -> list[Path]:
    return [d.with_suffix(".o") for d in (WORK / "base").glob("*.d") if sees(d, file)]


def survives(mutant: Mutant) -> bool | None:
    """None: it does not compile."""
    path = found(WORK / "src", mutant.file)
    kept = path.read_text()
    lines = kept.splitlines()
    lines[mutant.line - 1] = mutant.after
    path.write_text("\n".join(lines) + "\n")
    changed = WORK / "changed"
    shutil.rmtree(changed, ignore_errors=True)
    changed.mkdir()
    try:
        for one in seeing(mutant.file):
            tests = ROOT / "core/tests" / f"{one.stem}.cpp"
            source = tests if tests.exists() else found(WORK / "src", f"{one.stem}.cpp")
            if not compile_(source, changed / one.name):
                return None
        objects = [
            changed / o.name if (changed / o.name).exists() else o for o in (WORK / "base").glob("*.o")
        ]
        return passes(objects, mutant.file in SLOW)
    finally:
        path.write_text(kept)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--only", nargs="*", default=TARGETS, metavar="FILE", help="of core/src; default: all"
    )
    parser.add_argument("--sample", type=int, help="so many of all, drawn with a fixed seed")
    parser.add_argument("--list", action="store_true", help="print the mutants and end")
    options = parser.parse_args()
    mutants = [m for file in options.only for m in mutants_of(file)]
    if options.sample is not None and options.sample < len(mutants):
        mutants = random.Random(12).sample(mutants, options.sample)
    if options.list:
        print(*mutants, sep="\n")
        return
    build_base()
    if not passes(list((WORK / "base").glob("*.o")), slow=True):
        raise SystemExit("the tests fail without a mutation")
    killed: dict[str, int] = dict.fromkeys(options.only, 0)
    survivors: list[Mutant] = []
    for number, mutant in enumerate(mutants, 1):
        outcome = survives(mutant)
        if outcome:
            survivors.append(mutant)
            print(f"survives {mutant}", flush=True)
        elif outcome is False:
            killed[mutant.file] += 1
        print(f"{number} of {len(mutants)}", file=sys.stderr, end="\r", flush=True)
    print("\n| file | mutants | killed |\n|---|---|---|")
    for file, count in killed.items():
        if all_ := count + sum(m.file == file for m in survivors):
            print(f"| {file} | {all_} | {count} |")
    total = sum(killed.values()) + len(survivors)
    print(f"\n{sum(killed.values())} of {total} killed ({sum(killed.values()) / max(total, 1):.1%})")


if __name__ == "__main__":
    main()
