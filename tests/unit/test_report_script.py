"""The libraries of a report's script are bundled once for a user, and never taken from another's hand."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import pytest
import vl_convert

from rtmeter.report import script


@pytest.fixture
def bundled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """What was bundled so far, each time another text."""
    made: list[str] = []

    def bundle(snippet: str) -> str:
        made.append(f"{snippet}\nvar number = {len(made)};")
        return made[-1]

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(vl_convert, "javascript_bundle", bundle)
    return made


def page() -> str:
    script.script.cache_clear()
    try:
        return script.script()
    finally:
        script.script.cache_clear()


FOR_OLDER = {"clone", "fast-deep-equal", "lodash.debounce"}
"""Brought along for an older Vega-Lite or another use, not bundled."""


def test_a_page_has_the_licences_of_what_is_bundled(bundled: list[str]) -> None:
    """After a newer vl-convert: licences and holders are those of these versions on npm."""
    (library,) = Path(vl_convert.__file__).parent.glob("*.so")
    found = re.findall(rb"/npm/([a-z0-9.-]+)@(\d+\.\d+\.\d+)", library.read_bytes())
    brought = {(name.decode(), number.decode()) for name, number in found}
    newest = vl_convert.get_vegalite_versions()[-1]
    bundle = {(name, number) for name, number in brought if name not in FOR_OLDER | {"vega-lite"}}
    bundle |= {one for one in brought if one[0] == "vega-lite" and one[1].startswith(f"{newest}.")}
    heads = " ".join(re.findall(r"^== (.+?) \(", script.licences(), re.M | re.S))
    assert set(re.findall(r"([a-z0-9-]+) (\d+\.\d+\.\d+)", heads)) == bundle
    assert f"vl-convert-python {version('vl-convert-python')} bundles" in script.licences()
    notice, _, rest = page().partition("*/")
    assert notice.strip() == f"/*!\n{script.licences()}".strip() and bundled[0] in rest


def test_it_is_bundled_once(bundled: list[str]) -> None:
    assert page() == page()
    assert len(bundled) == 1 and bundled[0] in page()
    (kept,) = script.cache_folder().iterdir()
    assert version("vl-convert-python") in kept.name


@pytest.mark.parametrize("how", ["changed", "torn", "of others to write", "no text", "gone"])
def test_what_is_not_what_was_written_is_bundled_anew(bundled: list[str], how: str) -> None:
    page()
    (kept,) = script.cache_folder().iterdir()
    if how == "changed":
        kept.write_text(kept.read_text().replace("number", "evil"))
    elif how == "torn":
        kept.write_text(kept.read_text()[:-3])
    elif how == "of others to write":
        kept.chmod(0o666)
    elif how == "no text":
        kept.write_bytes(b"\xff\xfe")
    else:
        kept.unlink()
    assert "number = 1;" in page() and "evil" not in page()
    assert len(bundled) == 2, "and kept again"


def test_a_user_without_a_home_has_a_report_all_the_same(
    bundled: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert page() and len(bundled) == 1
