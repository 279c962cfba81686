"""The commands of docs/add-a-middleware.md work as they stand, from copying the template to measuring."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pages import ROOT, run_page

from rtmeter.measure.probe.probes import find_probes

PAGE = ROOT / "docs" / "add-a-middleware.md"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home directory in which the page's commands were run, in a shell that finds `rtmeter`."""
    home = tmp_path_factory.mktemp("home")
    (home / "stdout").write_text(run_page(PAGE, home, cwd=ROOT))
    return home


@pytest.mark.timeout(1200)
def test_the_copy_is_a_probe_of_its_own_name(home: Path) -> None:
    printed = (home / "stdout").read_text()
    described = next(line for line in printed.splitlines() if line.startswith('{"rtmeter":'))
    facts = json.loads(described)
    assert facts["name"] == "mymw"
    assert facts["measures"] == ["wakeup", "timer.one_shot", "timer.periodic", "cycle"]
    assert "mymw" in printed.split(described, 1)[1], "rtmeter adapters lists it"


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("folder", ["periodic", "one_shot", "cycle"])
def test_every_release_of_its_measurements_is_accounted_for(home: Path, folder: str) -> None:
    cell = json.loads((home / "mymw" / folder / "cell.json").read_text())
    assert cell["status"] == "complete"
    assert cell["valid"] is True
    assert cell["adapter"] == "mymw"
    counts = cell["summary"]["counts"]
    assert counts["warm_up"] == 100
    assert counts["armed" if folder == "one_shot" else "released"] == 500
    assert counts["fired" if folder == "one_shot" else "served"] > 0


@pytest.mark.timeout(1200)
def test_the_source_tree_is_left_alone(home: Path) -> None:
    assert not (ROOT / "adapters" / "mymw").exists()
    assert not (ROOT / "adapters" / "template" / "cpp" / "build").exists()


@pytest.mark.full_only("the Rust chapter: builds the core once more")
@pytest.mark.timeout(1200)
def test_the_copy_in_rust_measures_too(tmp_path: Path) -> None:
    if "dustdds" not in find_probes():
        pytest.skip("adapters in Rust are not built here")
    run_page(PAGE, tmp_path, cwd=tmp_path, fence="bash")
    cell = json.loads((tmp_path / "rustmw" / "cycle" / "cell.json").read_text())
    assert (cell["adapter"], cell["status"], cell["valid"]) == ("rustmw", "complete", True)
    assert cell["summary"]["counts"]["released"] == 500


def test_the_page_names_what_exists() -> None:
    """Files that the page sends its reader to, and the methods it names."""
    page = PAGE.read_text()
    for path in re.findall(r"`((?:adapters|core|src|tests|docs)/[\w./-]+)`", page):
        assert (ROOT / path).exists(), path
    contract = (ROOT / "core/include/rtmeter/adapter.h").read_text()
    for method in re.findall(r"`(create_\w+|spin_some|arm|publish|wait|spin|interrupt|describe)`", page):
        assert f"(*{method})" in contract, method
