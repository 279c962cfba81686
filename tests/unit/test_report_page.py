"""What a report says of each kind of cell, and that text from results stays text."""

from __future__ import annotations

import base64
import errno
import json
import re
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import altair
import pytest

from rtmeter import report, store
from rtmeter.errors import RtmeterError
from rtmeter.report import words
from rtmeter.report.answer import answer
from rtmeter.report.cells import find_cells
from synthetic import Made, usual, write_cell, write_failed_cell

RTPRIO = {
    "field": "scheduling",
    "value": "fifo:99",
    "message": "RLIMIT_RTPRIO of 0 does not allow priority 99",
    "remedy": "raise rtprio in /etc/security/limits.conf",
}
HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>\"'{{7*7}}&amp;"


class Page(HTMLParser):
    """The text of a page that a reader sees, its elements with their attributes, and its plots."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: dict[str, str] = {}
        self._words: list[str] = []
        self._inside: str = ""
        self.feed(html)
        self.text = " ".join(" ".join(self._words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag
        if tag == "script":
            self._script = dict(attrs).get("id") or "own"
            assert self._script not in self.scripts
            self.scripts[self._script] = ""

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts[self._script] += data
        elif self._inside != "style":
            self._words.append(data)

    @property
    def plots(self) -> list[dict[str, Any]]:
        specs = json.loads(zlib.decompress(base64.b64decode(self.scripts["plots"])))
        assert len(specs) == sum("data-plot" in attrs for _, attrs in self.elements)
        return specs


def page_of(path: Path) -> Page:
    return Page(report.write(path, path.parent / "report.html").read_text(encoding="utf-8"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "results"


def test_a_pass_answers_first_and_names_the_next_step(folder):
    page = page_of(write_cell(folder, Made(id="idle loop", delays=usual(2, 40))))
    assert "Pass All 2,000 releases met the deadline of 1,000 µs." in page.text
    assert "Is the wake-up latency of every release within 1,000 µs?" in page.text
    assert "Virtual machine (kvm): unfit for absolute claims." in page.text
    assert (
        "To show that fewer than 1 in 1,000 miss, measure 2,995 releases without a miss (3 s)." in page.text
    )
    assert "0 of 2,000 releases missed the deadline of 1ms on latency" in page.text
    assert len(page.plots) == 3


def test_a_fail_states_its_misses_and_where_to_look(folder):
    stalls = lambda k: (2_500_000 if k == 700 else 50_000,)  # noqa: E731
    page = page_of(write_cell(folder, Made(delays=stalls, skip=True)))
    assert "Fail 3 of 2,000 releases missed the deadline of 1,000 µs." in page.text
    assert (
        "(1 late, 2 skipped): none is allowed; the misses come in one cluster, at most 3 of them consecutive."
        in (page.text)
    )
    assert "The maximum is 2,500.0 µs of 1,000 µs allowed, at k = 700." in page.text
    assert "See what kept the thread from being free" in page.text
    assert "released = served + skipped: 2000 = 1998 + 2" in page.text


def test_too_few_samples_say_how_many_more(folder):
    page = page_of(write_cell(folder, Made(miss_ratio=1e-4)))
    assert "Inconclusive All 2,000 releases met the deadline of 1,000 µs: not enough evidence." in page.text
    assert "within 1,000 µs, but for at most 1 in 10,000 releases, with 95 % confidence?" in page.text
    assert "Measure 27,956 more releases (28 s): if all are in time, it passes." in page.text


def test_no_deadline_is_described_not_judged(folder):
    page = page_of(write_cell(folder, Made(deadline_ns=None)))
    assert "Not judged 2,000 releases measured; no deadline was asked." in page.text
    assert "--deadline" in page.text


def test_a_failed_cell_shows_its_error_and_remedy(folder):
    page = page_of(write_failed_cell(folder, Made(), RTPRIO))
    assert "Error scheduling = fifo:99: RLIMIT_RTPRIO of 0 does not allow priority 99." in page.text
    assert "on the target itself" not in page.text
    assert "Raise rtprio in /etc/security/limits.conf." in page.text
    assert page.plots == []


def test_made_up_times_are_called_that(folder):
    page = page_of(write_cell(folder, Made(changes={"clock": {"id": "scripted"}})))
    assert "Scripted clock: the delays are made up, they test rtmeter itself." in page.text
    assert "on the target itself" not in page.text


def test_a_machine_of_its_own_is_not_called_unfit(folder):
    page = page_of(write_cell(folder, Made(changes={"machine": {"virtual_machine": None}})))
    assert "unfit" not in page.text


def test_settings_that_are_not_in_effect_as_asked_are_marked(folder):
    effective = {"scheduling": {"policy": "other"}, "memory_locked": True, "apply": "before_init"}
    page = page_of(write_cell(folder, Made(changes={"effective": effective})))
    assert "scheduling fifo:80 other (differs)" in page.text
    assert "lock memory yes yes" in page.text
    assert page.text.count("(differs)") == 1


def test_every_thread_is_listed(folder):
    page = page_of(write_cell(folder, Made()))
    assert "4211 rtmeter-probe-p measured fifo:80 1 50us" in page.text
    assert "4213 recvUC middleware fifo:80 1 50us" in page.text


def test_an_interrupted_cell_is_marked(folder):
    page = page_of(write_cell(folder, Made(changes={"status": "interrupted"})))
    assert "The run was interrupted: what it measured until then is judged." in page.text
    assert len(page.plots) == 3


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"counters": {"overflow": 12}}, "The data are invalid: 12 rows were lost to a full ring."),
        (
            {"warnings": [{"type": "samples_do_not_add_up", "message": "row k = 7 is missing"}]},
            "The data are invalid: row k = 7 is missing.",
        ),
        ({"missing": [[500, 899]]}, "k = 500 to 899"),
        ({"missing": [[500, None]]}, "k = 500 to the end"),
    ],
)
def test_invalid_data_are_an_error_that_says_why(folder, changes, says):
    page = page_of(write_cell(folder, Made(changes={"valid": False, **changes})))
    assert "Error The data are invalid" in page.text
    assert says in page.text


def test_an_empty_cell_says_so(folder):
    changes = {"summary": None, "verdict": None, "requirement": None}
    write_cell(folder, Made(changes=changes))
    (folder / "samples.parquet").unlink()
    page = page_of(folder)
    assert "No release was measured" in page.text
    assert page.plots == []


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{", "Invalid JSON"),
        (b"[1, 2]", "Input should be an object"),
        (b'{"format": "rtmeter-cell"}', "Field required"),
        (b"\xff\xfe", "Invalid JSON"),
    ],
)
def test_a_damaged_cell_json_is_shown_as_damage(folder, content, says):
    write_cell(folder, Made())
    (folder / "cell.json").write_bytes(content)
    page = page_of(folder)
    assert "Error" in page.text
    assert "damaged" in page.text
    assert re.search(rf"Error The result cannot be read: cell\.json: .*{says}", page.text)
    assert (
        "What to do next Measure the cell again, or recover its probe.rtlog (rtmeter recover)." in page.text
    )


def test_a_result_of_another_version_names_both_and_what_reads_it(folder):
    page = page_of(write_cell(folder, Made(changes={"version": 2})))
    assert "cell.json: is of version 2, and this rtmeter reads version 1." in page.text
    assert "What to do next Use the rtmeter that wrote it, or a later one." in page.text


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("version", 2),
        ("config", {"period_ns": "soon"}),
        ("config", {"period_ns": 0}),
        ("config", {"period_ns": 2**70}),
        ("config", {}),
        ("requirement", {"deadline_ns": 1000, "miss_ratio": -1}),
        ("threads", {"client": ["x"]}),
        ("summary", {"quantities": {"latency": {"per_release": {"n": "many"}}}}),
        ("warnings", "none"),
        ("measurement", "sleep"),
        ("axes", ["a"]),
    ],
)
def test_a_value_of_the_wrong_kind_is_damage_and_named(folder, field, value):
    page = page_of(write_cell(folder, Made(changes={field: value})))
    assert "damaged" in page.text
    assert field in page.text or "period_ns" in page.text


@pytest.mark.parametrize("damage", [b"", b"PAR1", None])
def test_samples_that_cannot_be_read_are_damage(folder, damage):
    write_cell(folder, Made())
    if damage is None:
        (folder / "samples.parquet").unlink()
    else:
        (folder / "samples.parquet").write_bytes(damage)
    page = page_of(folder)
    assert "damaged" in page.text
    assert "samples.parquet" in page.text
    assert page.plots == []


def test_samples_cut_in_the_middle_are_damage(folder):
    write_cell(folder, Made(samples=20_000, delays=usual(1, 50)))
    samples = folder / "samples.parquet"
    content = bytearray(samples.read_bytes())
    content[2000:60_000] = bytes(58_000)
    samples.write_bytes(content)
    assert "damaged" in page_of(folder).text


def test_one_sample_is_plotted(folder):
    page = page_of(write_cell(folder, Made(samples=1)))
    assert "The one release met the deadline of 1,000 µs." in page.text
    assert "n = 1 " in page.text
    over_time, histogram, ccdf = page.plots
    assert over_time["datasets"]["stretches"]["max"] == [50.0]
    assert over_time["datasets"]["stretches"]["dot"] == [True]
    assert histogram["datasets"]["bins"]["line0"] == [0, 1, 0]
    shares = ccdf["datasets"]["shares"]
    assert (shares["x"][-3:-1], shares["share"][-3]) == ([50.0, 50.0], 1.0)
    assert shares["low"][-3] == 0.025  # Clopper and Pearson: 1 of 1, one-sided at 97.5 %


def test_everything_lost_has_plots_without_values(folder):
    made = Made(measurement="roundtrip", skip=True, delays=lambda k: (0, None, None), samples=2_000)
    page = page_of(write_cell(folder, made))
    assert "Fail 2,000 of 2,000 releases missed" in page.text
    assert "The maximum is a release that was lost." in page.text
    assert set(page.plots[0]["datasets"]["stretches"]["max"]) == {None}
    assert set(page.plots[2]["datasets"]["shares"]["share"]) == {1.0}


def test_a_folder_shows_every_cell_the_worst_first(folder):
    write_cell(folder / "good", Made(id="good"))
    write_cell(folder / "bad", Made(id="bad", delays=lambda k: (2e6 * (k == 300),)))
    write_failed_cell(folder / "broken", Made(id="broken"), RTPRIO)
    (folder / "now.partial").mkdir()
    run = {"format": "rtmeter-run", "version": 1, "cells": ["good", "bad", "broken", "now", "later"]}
    (folder / "run.json").write_text(json.dumps(run))
    cells = sorted(find_cells(folder), key=lambda cell: cell.badness)
    assert [(cell.id, cell.state) for cell in cells] == [
        ("broken", "failed"),
        ("bad", "complete"),
        ("now", "running"),
        ("later", "not run"),
        ("good", "complete"),
    ]
    page = page_of(folder)
    assert "Of 5 cells 1 failed or gave invalid data, 1 missed the requirement." in page.text
    assert "1 pass" in page.text
    assert page.text.index("broken") < page.text.index("bad") < page.text.index("good")


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (1e-3, "1 in 1,000"),
        (5e-3, "1 in 200"),
        (3e-3, "3 in 1,000"),
        (0.9, "9 in 10"),
        (1e-9, "1 in 1,000,000,000"),
    ],
)
def test_shares_are_told_as_so_many_in_so_many(share, said):
    assert words.one_in(share) == said


def test_what_was_asked_begins_with_the_campaigns_own_words_and_explains_others(folder):
    """Of one run; where the cells of several are, none speaks for all."""
    write_cell(folder / "one" / "a", Made(id="a", samples=10))
    write_cell(folder / "one" / "b", Made(id="b", samples=10, measurement="roundtrip", skip=True))
    store.write_run(folder / "one", {"cells": ["a", "b"], "description": f"Is {HOSTILE} fit?"}, None)
    said = answer(find_cells(folder))
    assert said.asked[0] == f"Is {HOSTILE} fit?"
    assert len(said.asked) == 3
    assert [term.partition(":")[0] for term in said.terms] == ["Release", "Cell"]
    page = page_of(folder)
    assert all(text in page.text for text in (*said.asked, *said.terms))
    assert page.text.index(said.asked[0]) < page.text.index(said.asked[1])
    assert [term.partition(":")[0] for term in answer(find_cells(folder / "one" / "a")).terms] == [
        "Wake-up latency"
    ]
    write_cell(folder / "two" / "a", Made(id="a", samples=10))
    assert answer(find_cells(folder)).asked[0].startswith("Is the wake-up latency")


def test_cells_of_one_name_are_told_apart_by_their_folders(folder):
    write_cell(folder / "monday" / "idle", Made(id="idle", samples=10))
    write_cell(folder / "tuesday" / "idle", Made(id="idle", samples=10))
    assert [cell.id for cell in find_cells(folder)] == ["monday/idle", "tuesday/idle"]


def test_all_cells_passing_names_the_one_nearest_to_its_deadline(folder):
    write_cell(folder / "a", Made(id="a", delays=lambda k: (100_000,)))
    write_cell(folder / "b", Made(id="b", delays=lambda k: (900_000,)))
    said = answer(sorted(find_cells(folder), key=lambda cell: cell.badness))
    assert said.headline == "All 2 cells passed."
    assert "Nearest to its deadline: b . 0 of 2,000 releases missed" in page_of(folder).text
    assert said.limits[0].startswith("b comes nearest to its deadline: the maximum is 900.0 µs of 1,000 µs")


def test_text_from_results_stays_text(folder):
    doubts = [{"type": HOSTILE, "message": HOSTILE, "hint": HOSTILE}]
    thread = {"tid": HOSTILE, "name": HOSTILE, "role": HOSTILE, "policy": HOSTILE, "affinity": [HOSTILE]}
    changes = {
        "warnings": doubts,
        "threads": {HOSTILE: [thread]},
        "machine": {"hostname": HOSTILE, "kernel": HOSTILE, "virtual_machine": HOSTILE, HOSTILE: HOSTILE},
        "axes": {HOSTILE: HOSTILE},
        "adapter": HOSTILE,
        "adapter_facts": {"middleware": HOSTILE, "qos": {HOSTILE: HOSTILE}},
        "effective": {"scheduling": {"policy": HOSTILE}},
        "started": HOSTILE,
        "status": "failed",
        "valid": False,
        "error": {"field": HOSTILE, "value": HOSTILE, "message": HOSTILE, "remedy": HOSTILE},
    }
    write_cell(folder / "one", Made(id=HOSTILE, changes=changes))
    write_cell(folder / "two", Made(id="two"))
    page = page_of(folder)
    assert HOSTILE in page.text
    assert page.text.count("window.hacked") > 20
    assert sorted(page.scripts) == ["own", "plots"]
    assert "hacked" not in page.scripts["own"]
    assert not any(
        tag == "img" or any(name.startswith("on") for name in attrs) for tag, attrs in page.elements
    )


def test_the_page_brings_everything_and_allows_nothing_else(folder):
    page = page_of(write_cell(folder, Made()))
    loading = [attrs for _, attrs in page.elements if "src" in attrs or attrs.get("rel") == "stylesheet"]
    assert loading == []
    policy = next(a["content"] for _, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "unsafe-inline" not in policy.split("script-src")[1]


CELLS = {
    "wakeup": Made(delays=usual(1, 50)),
    "early": Made(measurement="timer", mode="one_shot", delays=lambda k: (k % 50 * 1000 - 9000,)),
    "round trip": Made(
        measurement="roundtrip", skip=True, delays=lambda k: (0, 5e4, None if k % 400 == 9 else 3e6)
    ),
    "cycle": Made(measurement="cycle", delays=usual(3, 50)),
}


@pytest.mark.parametrize("name", CELLS)
def test_plots_are_vega_lite(folder, name):
    plots = page_of(write_cell(folder, CELLS[name])).plots
    assert len(plots) >= 3
    for plot in plots:
        altair.LayerChart.from_dict(plot)


def test_the_plotted_n_is_that_of_the_summary(folder):
    page = page_of(write_cell(folder, CELLS["round trip"]))
    quantities = json.loads((folder / "cell.json").read_text())["summary"]["quantities"]
    for name, view in (("response", "per_release"), ("round_trip", "as_served")):
        n = quantities[name][view]["n"]
        assert re.search(rf"µs, {view.replace('_', ' ')}, n = {n:,}", page.text)


def test_a_full_disk_leaves_the_old_report(folder, monkeypatch):
    write_cell(folder, Made(samples=10))
    out = folder.parent / "report.html"
    out.write_text("the old one")

    def no_space(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", no_space)
    with pytest.raises(RtmeterError, match="No space left on device"):
        report.write(folder, out)
    assert out.read_text() == "the old one"
    assert list(out.parent.iterdir()) == [out, folder] or set(out.parent.iterdir()) == {out, folder}


def test_what_is_no_result_is_refused(tmp_path):
    with pytest.raises(RtmeterError, match="holds no cell"):
        report.write(tmp_path, tmp_path / "report.html")
    with pytest.raises(RtmeterError, match="is no folder"):
        report.write(tmp_path / "absent", tmp_path / "report.html")
    write_cell(tmp_path / "cell", Made(samples=10))
    with pytest.raises(RtmeterError, match="cannot be written"):
        report.write(tmp_path / "cell", tmp_path / "no" / "such" / "report.html")


def test_many_cells_stay_below_10_megabytes(folder, sized):
    cells = sized("cells", reduced=30, full=500)
    for number in range(cells):
        made = Made(
            id=f"cell {number}",
            measurement="roundtrip",
            skip=True,
            delays=usual(number, 60, spikes=0.01),
            axes={"payload": number % 5, "load": number // 5},
        )
        write_cell(folder / made.id, made)
    out = report.write(folder, folder.parent / "report.html")
    assert out.stat().st_size < 10e6
