"""Mutates the core's measurements, one change at a time, and tells which changes its tests do not notice.

A mutant is built apart (build/mutants-core): only the sources that see the change are compiled again,
without optimisation. It meets the core's tests that need no machine first, then whole probes: the one whose
middleware is a queue (tests/probe), the null adapter against its independent simulators, and the posix
adapter where processes meet (tests/integration). Killed is a mutant that fails a test, crashes, or does not
end; one that does not compile is none. What was found is kept as soon as it is, so that a run that was ended
goes on where it was.
docs/mutants.md keeps score and survivors.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "mutants-core"
MEASURE = ROOT / "core/src/measure"
TARGETS = [
    *sorted(path.name for path in MEASURE.glob("*.[ch]pp") if not path.name.startswith("config")),
    *("recorder.cpp", "hold.hpp", "progress.hpp"),
]
TESTS = [
    *("measurement", "measure_wakeup", "measure_chain", "exchange", "hand_over", "timers", "ticks"),
    *("pending", "progress", "recorder", "receipts", "periodic_timer", "event_count", "probe"),
    *("stamping_threads", "publications", "receive", "greeting", "measure_discovery"),
]
SLOW = {"recorder.cpp", "hold.hpp"}  # seen by the recorder's tests, which take seconds
QUEUE = ["second_topic", "stampers"]  # of tests/probe
CHAINS = (
    "tests/integration/test_chains_run.py::test_random_null_graphs_are_logged_and_told_as_plain_loops_have_it"
)
DISCOVERY = "tests/integration/test_discovery_run.py"
SCRIPTED = f"{DISCOVERY}::test_random_scripts_are_logged_as_plain_loops_have_it"
BESIDE = "tests/integration/test_beside_run.py"
REQUESTS = "tests/integration/test_requests_run.py"
EXACT = "tests/integration/test_null_exact.py"
SIMULATED = {
    "chain": [CHAINS],
    "discovery": [DISCOVERY],
    "roundtrip": [EXACT, BESIDE],
    "receipts": [BESIDE],
    "request": [REQUESTS],
    "": [EXACT, CHAINS, SCRIPTED],
}
"""Runs of the null adapter against its simulators, and of the posix one, by a part of the file's name."""

COMPILER = [
    *(["ccache"] if shutil.which("ccache") else []),
    "g++",
    "-std=c++20",
    "-O0",
    "-w",
    '-DRTMETER_VERSION="0"',
]
LIBRARIES = ["-lzstd", "-lpthread", "-ldl"]
GOOGLE = ["-lgtest_main", "-lgtest"]
CPU_S, WALL_S, MEMORY = 60, 1200, 8 << 30  # of a process; the clock's is for what waits for ever

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
    number: int = 0  # among the same changes of the same text

    @property
    def key(self) -> str:
        """The same wherever the line stands."""
        return f"{self.file}: {self.before.strip()} -> {self.after.strip()} #{self.number}"

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: `{self.before.strip()}` -> `{self.after.strip() or 'nothing'}`"


def found(sources: Path, file: str) -> Path:
    """In whatever room of the core it lies."""
    return next(sources.rglob(file))


def mutants_of(file: str) -> Iterator[Mutant]:
    seen = Counter[str]()
    for mutant in _changes(file):
        yield mutant._replace(number=seen[mutant.key])
        seen[mutant.key] += 1


def _changes(file: str) -> Iterator[Mutant]:
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
    includes = [
        *(f"-I{WORK / 'src'}", f"-I{ROOT / 'core/include'}", f"-I{ROOT / 'core/tests'}"),
        *(f"-I{ROOT / 'tests/probe'}", f"-I{ROOT / 'adapters/common'}"),
    ]
    defined = [
        f'-DRTMETER_SPEC_DIR="{ROOT / "spec"}"',
        f'-DRTMETER_PROBE="{WORK / "probes/rtmeter-probe-loopback"}"',
        '-DRTMETER_POSIX_PROBE=""',
    ]
    command: list[str | Path] = [*COMPILER, *defined, *includes, "-MMD", "-c", source, "-o", into]
    return subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0


def compiled(sources: Iterable[tuple[Path, Path]]) -> bool:
    """Each into its object, two at a time; false if one does not compile."""
    with ThreadPoolExecutor(2) as pool:
        return all(pool.map(lambda one: compile_(*one), sources))


def programs() -> dict[str, list[Path]]:
    """What is linked, with the sources beside the core's; the tests first."""
    return {
        "tests": [ROOT / f"core/tests/{test}_test.cpp" for test in TESTS],
        "queue": [ROOT / "tests/probe/probe_process.cpp"]
        + [ROOT / f"tests/probe/{test}_test.cpp" for test in QUEUE],
        "probes/rtmeter-probe-loopback": [ROOT / "tests/probe/loopback_probe.cpp"],
        "probes/rtmeter-probe-null": sorted((ROOT / "adapters/null").glob("*.cpp")),
        "probes/rtmeter-probe-posix": sorted((ROOT / "adapters/posix").glob("*.cpp")),
    }


def source_of(object_: Path) -> Path:
    """What was compiled into it, as the compiler wrote it down."""
    first = object_.with_suffix(".d").read_text().replace("\\\n", " ").split(": ", 1)[1]
    return Path(first.split()[0])


def build_base() -> None:
    shutil.rmtree(WORK / "src", ignore_errors=True)
    shutil.copytree(ROOT / "core/src", WORK / "src")
    shutil.rmtree(WORK / "base", ignore_errors=True)
    for name, sources in {"core": [*(WORK / "src").rglob("*.cpp")], **programs()}.items():
        folder = WORK / "base" / Path(name).name
        folder.mkdir(parents=True)
        if not compiled((source, folder / f"{source.stem}.o") for source in sources):
            raise SystemExit(f"{name} does not compile")
    (WORK / "probes").mkdir(exist_ok=True)


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def link(program: str, changed: dict[Path, Path]) -> Path:
    base = WORK / "base"
    objects = [*(base / "core").glob("*.o"), *(base / Path(program).name).glob("*.o")]
    libraries = [*([] if "/" in program else GOOGLE), *LIBRARIES]
    binary = WORK / program
    linked = [changed.get(one, one) for one in objects]
    subprocess.run(["g++", *linked, "-o", binary, *libraries], check=True)
    return binary


Fate = Literal["killed", "timeout", "survives", "no mutant"]
"""The last: it does not compile."""


def fate_of(*command: str | Path) -> Fate:
    environment = os.environ | {"RTMETER_PROBE_PATH": str(WORK / "probes"), "PYTHONDONTWRITEBYTECODE": "1"}
    child = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        preexec_fn=limited,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return "survives" if child.wait(WALL_S) == 0 else "killed"
    except subprocess.TimeoutExpired:
        return "timeout"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def tried(changed: dict[Path, Path], file: str) -> Fate:
    """The quickest tests first. ``file``: of which the mutant is; empty: the base, which meets all."""
    only = [] if file in SLOW or not file else ["--gtest_filter=-RecorderTest.*"]
    fate = fate_of(link("tests", changed), "--gtest_brief=1", *only)
    if fate != "survives":
        return fate
    for program in programs():
        link(program, changed)
    simulated = next(tests for part, tests in SIMULATED.items() if part in file)
    if not file:
        simulated = list(dict.fromkeys(test for tests in SIMULATED.values() for test in tests))
    # The one refusal that asks the posix probe is not of a measurement.
    fate = fate_of(WORK / "queue", "--gtest_brief=1", "--gtest_fail_fast", "--gtest_filter=-*Refused*")
    if fate != "survives":
        return fate
    return fate_of(sys.executable, "-m", "pytest", "-qx", "-p", "no:cacheprovider", *simulated)


@functools.cache
def seeing(file: str) -> list[Path]:
    found_ = [path for path in (WORK / "base").rglob("*.d") if f"/{file}" in path.read_text()]
    return [path.with_suffix(".o") for path in found_]


def meets(mutant: Mutant) -> Fate:
    path = found(WORK / "src", mutant.file)
    kept = path.read_text()
    lines = kept.splitlines()
    lines[mutant.line - 1] = mutant.after
    path.write_text("\n".join(lines) + "\n")
    folder = WORK / "changed"
    shutil.rmtree(folder, ignore_errors=True)
    changed = {one: folder / one.parent.name / one.name for one in seeing(mutant.file)}
    for into in changed.values():
        into.parent.mkdir(parents=True, exist_ok=True)
    try:
        if not compiled((source_of(one), into) for one, into in changed.items()):
            return "no mutant"
        return tried(changed, mutant.file)
    finally:
        path.write_text(kept)


def _drawn(mutant: Mutant) -> bytes:
    """An order that has nothing to do with theirs, and that changes elsewhere leave as it is."""
    return hashlib.sha256(mutant.key.encode()).digest()


def kept_fates(kept: Path) -> dict[str, Fate]:
    lines = kept.read_text().splitlines() if kept.exists() else []
    return dict(json.loads(line) for line in lines)


def told(mutants: list[Mutant], fates: dict[str, Fate]) -> None:
    """The tables of docs/mutants.md."""
    met = [(mutant, fates[mutant.key]) for mutant in mutants if mutant.key in fates]
    met = [(mutant, fate) for mutant, fate in met if fate != "no mutant"]
    all_, late = Counter(m.file for m, _ in met), sum(fate == "timeout" for _, fate in met)
    killed = Counter(m.file for m, fate in met if fate != "survives")
    print("\n| file | mutants | killed |\n|---|---|---|")
    for file, count in sorted(all_.items()):
        print(f"| {file} | {count} | {killed[file]} |")
    print(*(f"survives {mutant}" for mutant, fate in met if fate == "survives"), sep="\n")
    share = killed.total() / max(all_.total(), 1)
    print(f"\n{killed.total()} of {all_.total()} killed ({share:.1%}), {late} by not ending in time")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--only", nargs="*", default=TARGETS, metavar="FILE", help="of core/src; default: all"
    )
    parser.add_argument("--sample", type=int, help="so many of all, drawn with a fixed seed")
    parser.add_argument("--told", action="store_true", help="print what is known of all, and end")
    parser.add_argument("--list", action="store_true", help="print the mutants and end")
    parser.add_argument("--again", action="store_true", help="try nothing but the survivors of earlier runs")
    parser.add_argument("--anew", action="store_true", help="forget what earlier runs found")
    options = parser.parse_args()
    kept = WORK / "fates.jsonl"
    if options.anew:
        kept.unlink(missing_ok=True)
    fates = kept_fates(kept)
    every = [m for file in options.only for m in mutants_of(file)]
    mutants = sorted(every, key=_drawn)[: options.sample]
    if options.list:
        print(*mutants, sep="\n")
        return
    rest = [mutant for mutant in mutants if mutant.key not in fates and not options.told]
    if options.again:
        rest = [mutant for mutant in every if fates.get(mutant.key) == "survives"]
    if rest:
        build_base()
        if (fate := tried({}, "")) != "survives":
            raise SystemExit(f"the tests fail without a mutation ({fate})")
    for number, mutant in enumerate(rest, 1):
        fates[mutant.key] = fate = meets(mutant)
        with kept.open("a") as keep:
            keep.write(json.dumps([mutant.key, fate]) + "\n")
        print(f"{number} of {len(rest)}: {fate} {mutant}", flush=True)
    told(every, fates)


if __name__ == "__main__":
    main()
