"""Rules that hold for the repository itself."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import tomllib
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
MOST_LINES = 400
SOURCES = {".c", ".cpp", ".h", ".hpp", ".py", ".rs", ".sh", ".cmake"}
CORE_ROOMS = ["json", "system", "log", "measure", "probe"]
"""Each of ``core/src`` includes only itself, those before it, and what lies outside of rooms."""
LARGE_ADAPTER_LINES = 400
DATA = {".css", ".in", ".j2", ".js", ".json", ".lock", ".md", ".toml", ".txt", ".xml", ".yaml", ".yml"}


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]


FILES = tracked()
PAGES = [path for path in FILES if path.suffix == ".md"]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_no_source_file_is_longer_than_allowed() -> None:
    too_long = {
        name_of(path): lines
        for path in FILES
        if path.suffix in SOURCES and (lines := path.read_text().count("\n")) > MOST_LINES
    }
    assert not too_long


def test_microseconds_have_one_unit() -> None:
    """``us``, as it is typed; µs is read only."""
    reads = {"src/rtmeter/values.py", "src/rtmeter/campaign/option_types.py", "tests/unit/test_values.py"}
    reads |= {"tests/unit/test_repository.py"}
    reads |= {"spec/campaign.schema.json", "spec/rigs.schema.json"}
    texts = [path for path in FILES if path.suffix in SOURCES | DATA | {".html", ".svg"}]
    assert {name_of(path) for path in texts if "µs" in path.read_text()} <= reads


def test_no_two_files_of_tests_have_one_name() -> None:
    """pytest would collect but one of them."""
    names = [path.name for path in FILES if path.match("tests/**/test_*.py")]
    assert len(names) > 200 and sorted(names) == sorted(set(names))


def test_the_rooms_of_the_core_include_each_other_in_one_direction() -> None:
    sources = [path for path in FILES if path.is_relative_to(ROOT / "core/src")]
    room_of = {path: path.relative_to(ROOT / "core/src").parts[0] for path in sources}
    assert {room for path, room in room_of.items() if path.parent.name != "src"} == set(CORE_ROOMS)
    upward = [
        f"{name_of(path)}: {included}"
        for path, room in room_of.items()
        for included in re.findall(r'#include "([a-z]+)/', path.read_text())
        if included in CORE_ROOMS
        and room != included
        and room not in CORE_ROOMS[CORE_ROOMS.index(included) :]
    ]
    assert not upward


def parsed() -> dict[str, ast.Module]:
    """The front's modules by name."""
    found = {}
    for path in FILES:
        if path.suffix == ".py" and path.is_relative_to(ROOT / "src"):
            parts = path.relative_to(ROOT / "src").with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found[name] = ast.parse(path.read_text())
    return found


def imported_by(modules: dict[str, ast.Module]) -> dict[str, set[str]]:
    """The modules of ours that each of them imports, also where only a type is needed, or a function imports
    when it is called. A name that a package's ``__init__`` takes from a module of its own counts as the
    package's."""
    imported: dict[str, set[str]] = {name: set() for name in modules}
    for name, module in modules.items():
        for node in ast.walk(module):
            if isinstance(node, ast.ImportFrom) and node.module in modules:
                inner = (f"{node.module}.{alias.name}" for alias in node.names)
                imported[name] |= {one if one in modules else node.module for one in inner}
            elif isinstance(node, ast.Import):
                imported[name] |= {alias.name for alias in node.names} & modules.keys()
    return imported


def test_no_modules_of_the_front_import_each_other_in_a_circle() -> None:
    imported = imported_by(parsed())
    assert sum(map(len, imported.values())) > 1000
    TopologicalSorter(imported).prepare()  # raises CycleError with the modules on it


def inits() -> list[Path]:
    """Of the front's rooms, and of its root."""
    front = ROOT / "src/rtmeter"
    return [path for path in FILES if path.name == "__init__.py" and path.is_relative_to(front)]


def test_no_rooms_of_the_front_import_each_other_in_a_circle() -> None:
    """A room within a room is one of its own. The root is left out: it names the API above all rooms, and has
    the words that all share."""
    imported = imported_by(parsed())
    rooms = {".".join(path.parent.relative_to(ROOT / "src").parts) for path in inits()} - {"rtmeter"}

    def room_of(module: str) -> str:
        return module if module in rooms else module.rpartition(".")[0]

    between: dict[str, set[str]] = {room: set() for room in rooms}
    for name, others in imported.items():
        if room_of(name) in rooms:
            between[room_of(name)] |= {room_of(other) for other in others} & rooms - {room_of(name)}
    assert sum(map(len, between.values())) > 150
    TopologicalSorter(between).prepare()


def test_each_room_says_what_comes_in_and_what_goes_out() -> None:
    said = {name_of(path): ast.get_docstring(ast.parse(path.read_text())) or "" for path in inits()}
    del said["src/rtmeter/__init__.py"]  # a user's words: the public API
    assert len(said) > 25
    assert [name for name, text in said.items() if "→" not in text.split("\n\n")[0]] == []


def test_a_name_of_a_type_means_one_thing_in_all_rooms() -> None:
    places: dict[str, list[str]] = {}
    for name, module in parsed().items():
        for node in module.body:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(name)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                found = node.targets[0].id
                if found[0].isupper() and not found.isupper():
                    places.setdefault(found, []).append(name)
    assert len(places) > 300
    twice = {name: where for name, where in places.items() if len(where) > 1 and not name.startswith("_")}
    assert set(twice) == {"Ints"}  # an alias of NumPy's, for rooms that do not import each other


def test_parquet_files_are_written_and_read_with_their_checksums() -> None:
    """Those of an archive are deltalake's; the answer of ``sql`` is its user's."""
    without = re.compile(r"parquet\.ParquetWriter|\bpq\.(ParquetWriter|ParquetFile|read_table|write_table)\(")
    front = (path for path in FILES if path.suffix == ".py" and path.is_relative_to(ROOT / "src/rtmeter"))
    found = {name_of(path) for path in front if without.search(path.read_text())}
    names = ("host/checked.py", "archive/check.py", "cli/answers.py")
    assert found == {f"src/rtmeter/{name}" for name in names}


def lines_of_adapter(folder: Path) -> int:
    """Without what tests it."""
    return sum(
        path.read_text().count("\n")
        for path in FILES
        if path.is_relative_to(folder) and path.suffix in SOURCES and "tests" not in path.parts
    )


ADAPTERS = sorted({path.parent for path in FILES if path.match("adapters/*/CMakeLists.txt")})


def test_each_key_of_a_cell_and_each_type_of_a_warning_stands_in_a_page() -> None:
    """Of warnings those that front, core and librtmeter make. What mutants.md quotes is no word on it."""
    pages = "\n".join(page.read_text() for page in PAGES if page.name != "mutants.md")
    keys = set(_keys(json.loads((ROOT / "spec/cell.schema.json").read_text())))
    types = {name for path in (ROOT / "src/rtmeter").rglob("*.py") for name in _warnings(path)}
    assert len(keys) > 200 and len(types) > 50
    assert [key for key in sorted(keys) if not re.search(rf"\b{key}\b", pages)] == []
    for path in (*(ROOT / "core/src").rglob("*.?pp"), *(ROOT / "librtmeter/src").rglob("*.?pp")):
        types |= set(re.findall(r'(?:doubt\(\s*|{"type", )"([a-z_]+)"', path.read_text()))
    assert [name for name in sorted(types) if f"`{name}`" not in pages] == []


def _keys(schema: object) -> Iterator[str]:
    parts: list[object] = []
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        parts = list(schema.values())
    elif isinstance(schema, list):
        parts = schema
    for part in parts:
        yield from _keys(part)


def _warnings(path: Path) -> Iterator[str]:
    """The types of what is made in this file, where they stand there."""
    for call in ast.walk(ast.parse(path.read_text())):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Doubt":
            words = [node.value for node in ast.walk(call.args[0]) if isinstance(node, ast.Constant)]
            yield from (word for word in words if re.fullmatch("[a-z0-9_]+", str(word)))


def test_the_page_says_which_benchmarks_make_does_not_run() -> None:
    (told,) = re.findall(r"Run by themselves[^:]*: ([^.]*)\.", (ROOT / "docs/benchmarks.md").read_text())
    (run,) = re.findall(
        r"^bench:.*?for name in (.*?);", (ROOT / "Makefile").read_text(), re.DOTALL | re.MULTILINE
    )
    alone = set(re.findall(r"`(\w+)`", told))
    shown = set(re.findall(r"`bench/(\w+)\.py", (ROOT / "docs/benchmarks.md").read_text()))
    assert alone == shown - set(run.replace("\\", " ").split())


@pytest.mark.parametrize("folder", ADAPTERS, ids=name_of)
def test_the_page_of_a_large_adapter_says_how_large_it_is_and_why(folder: Path) -> None:
    lines = lines_of_adapter(folder)
    page = (ROOT / f"docs/{folder.name}-adapter.md").read_text()
    said = re.search(
        r"^## Its size\n\nAbout ([\d,]+) lines, more than the 400 of an ordinary adapter: ", page, re.M
    )
    if lines <= LARGE_ADAPTER_LINES:
        assert said is None
    else:
        assert said is not None
        assert int(said[1].replace(",", "")) == pytest.approx(lines, rel=0.1)


def test_no_file_names_a_path_of_one_machine() -> None:
    absolute = re.compile(r"(?<![\w.$}])/(work|home|root)/\w")
    found = [
        f"{name_of(path)}:{number}: {line}"
        for path in FILES
        if path.suffix in SOURCES | DATA or path.name == "Makefile"
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if absolute.search(line)
    ]
    assert not found


def test_the_lock_pins_every_requirement_by_hash_and_names_no_index() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    assert not re.search(r"://|--(extra-)?index-url|--find-links|@ file", lock)
    entries = [entry for entry in re.split(r"\n(?=\w)", lock) if not entry.startswith("#")]
    assert len(entries) > 20
    assert [entry for entry in entries if "==" not in entry or "--hash=sha256:" not in entry] == []


def normalized(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[<>=!~ ;\[]", requirement)[0]).lower()


def test_the_lock_covers_what_the_package_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = {
        normalized(r) for r in [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    }
    locked = {
        normalized(line) for line in (ROOT / "requirements.lock").read_text().splitlines() if "==" in line
    }
    assert wanted <= locked


@pytest.mark.parametrize("package", ["package.xml", "adapters/common/rtmeter_msgs/package.xml"])
def test_the_ros_packages_have_the_version_of_the_project(package: str) -> None:
    declared = re.search(r"project\(rtmeter VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())
    assert declared
    assert ElementTree.parse(ROOT / package).findtext("version") == declared[1]


@cache
def prose_of(page: Path) -> str:
    """Without what is code."""
    return re.sub(r"^( *)```.*?^ *```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


@cache
def anchors_of(page: Path) -> set[str]:
    """Of its headings, as GitHub makes them: of two of one name the second has ``-1``."""
    found: list[str] = []
    for heading in re.findall(r"^#+ +(.+?) *$", prose_of(page), re.M):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        found.append(re.sub(r"[^\w -]", "", words).replace(" ", "-"))
    return {f"{one}-{before}" if (before := found[:n].count(one)) else one for n, one in enumerate(found)}


def test_an_anchor_is_made_as_github_makes_it(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A *b* `c_d`: e-f, [g h](i.md)!\n```\n# no\n```\n## Twice\n## Twice\n")
    assert anchors_of(page) == {"a-b-c_d-e-f-g-h", "twice", "twice-1"}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_between_pages_resolve(page: Path) -> None:
    links = [link.partition("#") for link in re.findall(r"\]\(([^)\s]+)[^)]*\)", prose_of(page))]
    ours = [(path, anchor) for path, _, anchor in links if "://" not in path]
    assert [path for path, _ in ours if not (page.parent / path).exists()] == []
    assert [
        f"{path}#{anchor}"
        for path, anchor in ours
        if anchor and anchor not in anchors_of((page.parent / path) if path else page)
    ] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_that_pages_name_exist(page: Path) -> None:
    """Paths of this repository in backquotes, such as `docs/decisions/` or `core/src/json/json.cpp`."""
    folders = {path.relative_to(ROOT).parts[0] for path in FILES if len(path.relative_to(ROOT).parts) > 1}
    named = re.findall(r"`([\w.-]+/[\w./-]*)`", prose_of(page))
    ours = [name for name in named if name.split("/")[0] in folders]
    assert [name for name in ours if not (ROOT / name).exists() and not list(ROOT.glob(f"{name}.*"))] == []
