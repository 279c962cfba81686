"""What a report says of each kind of cell, and that text from results stays text."""

from __future__ import annotations

import errno
import json
import re
from pathlib import Path

import pytest
from report_page import HOSTILE, page_of

from rtmeter import report
from rtmeter.errors import RtmeterError
from rtmeter.results.overview import cell_entries
from stored import write_run
from synthetic import Made, usual, write_cell, write_failed_cell
from vega_lite import check_vega_lite

RTPRIO = {
    "field": "scheduling",
    "value": "fifo:99",
    "message": "RLIMIT_RTPRIO of 0 does not allow priority 99",
    "remedy": "raise rtprio in /etc/security/limits.conf",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "results"


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
    assert "lock_memory yes yes" in page.text
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
        (
            {"warnings": [{"type": "re_stamped", "message": "stage b re-stamps what it passes on"}]},
            "The data are invalid: stage b re-stamps what it passes on.",
        ),
        (
            {"warnings": [{"type": "too_early", "message": "2 releases were over too early"}]},
            "The data are invalid: 2 releases were over too early.",
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
        (b"{", "is no JSON"),
        (b"[1, 2]", "is no object"),
        (b'{"format": "rtmeter-cell"}', "has version None"),
        (b"\xff\xfe", "is no JSON"),
    ],
)
def test_a_damaged_cell_json_is_shown_as_damage(folder, content, says):
    write_cell(folder, Made())
    (folder / "cell.json").write_bytes(content)
    page = page_of(folder)
    assert "Error" in page.text
    assert "damaged" in page.text
    assert re.search(rf"Error The result cannot be read: cell\.json: .*{says}", page.text)
    remedies = (
        "Measure the cell again, or recover its probe.rtlog",
        "Read it with the rtmeter that wrote it",
    )
    assert any(f"What to do next {remedy}" in page.text for remedy in remedies)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("version", 3),
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


def test_a_condition_of_which_a_repeat_is_damaged_is_an_error(tmp_path):
    for number in (1, 2):
        write_cell(tmp_path / f"a-r{number}", Made(id=f"a-r{number}", axes={"repeat": number}))
    assert "Error" not in page_of(tmp_path).text
    (tmp_path / "a-r2" / "samples.parquet").unlink()
    damage = []
    report.write(tmp_path, tmp_path / "report.html", damage=damage)
    assert [error.where for error in damage] == [str(tmp_path / "a-r2" / "samples.parquet")]
    page = page_of(tmp_path)
    assert "Error The result cannot be read: a-r2: samples.parquet: is not there" in page.text
    assert str(tmp_path) not in page.text


def test_samples_cut_in_the_middle_are_damage(folder):
    write_cell(folder, Made(samples=20_000, delays=usual(1, 50)))
    samples = folder / "samples.parquet"
    content = bytearray(samples.read_bytes())
    content[2000:60_000] = bytes(58_000)
    samples.write_bytes(content)
    assert "damaged" in page_of(folder).text


def test_one_sample_is_plotted(folder):
    page = page_of(write_cell(folder, Made(samples=1)))
    assert "The one release met the deadline of 1,000 us: not enough evidence." in page.text
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
    histogram = page.plots[1]["layer"][0]["encoding"]["x"]
    assert histogram["scale"]["domain"] == [0, pytest.approx(1.5 * made.deadline_ns / 1e3)]
    shares = page.plots[2]["datasets"]["shares"]
    assert set(shares["share"]) == {1.0} and shares["x"][0] < shares["x"][-1]


def test_a_folder_shows_every_cell_the_worst_first(folder):
    write_cell(folder / "good", Made(id="good"))
    write_cell(folder / "bad", Made(id="bad", delays=lambda k: (2e6 * (k == 300),)))
    write_failed_cell(folder / "broken", Made(id="broken"), RTPRIO)
    (folder / "now.partial").mkdir()
    write_run(folder, {"cells": ["good", "bad", "broken", "now", "later"]}, None)
    cells = sorted(cell_entries(folder), key=lambda cell: cell.badness)
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


def test_numbers_stand_before_the_axes_however_many_there_are(folder):
    for load in ("none", "cpu80"):
        write_cell(folder / load, Made(id=load, samples=10, axes={"load": load, "payload": "64B"}))
    text = page_of(folder).text
    table = text[text.index("Verdict Condition") :]
    heads = "Verdict Condition Deadline us Max us p99.9 us Mean us Missed n Runs State load payload"
    assert table.startswith(heads)
    assert all(f"complete {load} 64B" in table for load in ("none", "cpu80"))


def test_cells_of_one_name_are_told_apart_by_their_folders(folder):
    write_cell(folder / "monday" / "idle", Made(id="idle", samples=10))
    write_cell(folder / "tuesday" / "idle", Made(id="idle", samples=10))
    assert [cell.id for cell in cell_entries(folder)] == ["monday/idle", "tuesday/idle"]


def test_text_from_results_stays_text(folder):
    doubts = [{"type": HOSTILE, "message": HOSTILE, "hint": HOSTILE}]
    thread = {"tid": 7, "name": HOSTILE, "role": HOSTILE, "policy": HOSTILE, HOSTILE: [HOSTILE]}
    changes = {
        "warnings": doubts,
        "threads": {"client": [thread]},
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
        assert plot["layer"]
        check_vega_lite(plot)


def test_the_plotted_n_is_that_of_the_summary(folder):
    page = page_of(write_cell(folder, CELLS["round trip"]))
    quantities = json.loads((folder / "cell.json").read_text())["summary"]["quantities"]
    for name, view in (("response", "per_release"), ("round_trip", "as_served")):
        n = quantities[name][view]["n"]
        assert re.search(rf"us, {view.replace('_', ' ')}, n = {n:,}", page.text)


def test_a_full_disk_leaves_the_old_report(folder, monkeypatch):
    write_cell(folder, Made(samples=10))
    out = folder.parent / "report.html"
    out.write_text("the old one")

    def no_space(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", no_space)
    with pytest.raises(RtmeterError, match="cannot be written: no space left on device"):
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
