"""`rtmeter import`: cells that the other commands take, and what is said of what the file does not hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from imported import DATA

from rtmeter.cli import invoke
from rtmeter.results import store
from rtmeter.statistics.order import QUANTILES
from rtmeter.statistics.ranks import quantile_index
from stored import cell_json
from tool_files import cyclictest, hist2020, rttest


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):
    """``run("import", file, code=0)``: the JSON that a command prints."""

    def command(*words: object, code: int = 0) -> dict[str, Any]:
        assert invoke([*map(str, words), "--json"]) == code
        found = json.loads(capsys.readouterr().out)
        assert isinstance(found, dict)
        return found

    return command


def test_each_thread_of_a_histogram_becomes_a_cell(tmp_path: Path, run) -> None:
    found = run("import", DATA / "cyclictest.json", "--out", tmp_path / "out")
    assert [cell["id"] for cell in found["cells"]] == ["cyclictest-thread-0", "cyclictest-thread-1"]
    assert [folder.name for folder in store.cell_folders(tmp_path / "out")] == [
        c["id"] for c in found["cells"]
    ]
    cell = cell_json(tmp_path / "out" / "cyclictest-thread-0")
    assert cell["adapter_facts"] == {"middleware": "cyclictest", "middleware_version": "2.40"}
    assert cell["machine"] == {
        "hostname": "target",
        "kernel": "6.18.0",
        "kernel_version": "#1 SMP PREEMPT_DYNAMIC @0",
        "architecture": "x86_64",
    }
    assert cell["config"] == {"period_ns": 500_000, "warm_up": 0, "quantity": "wake-up latency"}
    about = cell["imported"]
    assert (about["data"], about["unit"], about["period_from"]) == ("histogram", "us", "file")
    assert about["facts"]["command"].startswith("cyclictest -q -t2 -i 500")
    assert about["unknown"] == []
    assert (cell["started"], cell["ended"]) == ("2026-11-21T08:16:40Z", "2026-11-21T08:16:41Z")
    assert len(about["sha256"]) == 64
    assert cell["summary"]["resolution_ns"] == 1000
    assert cell["effective"] == cell["usage"] == {}


def test_a_text_histogram_says_little_and_nothing_is_made_up(tmp_path: Path, run) -> None:
    run("import", DATA / "cyclictest.hist", "--out", tmp_path / "out")
    cell = cell_json(tmp_path / "out" / "cyclictest-thread-0")
    assert cell["imported"]["unknown"] == ["version", "unit", "period", "machine", "time", "options"]
    assert cell["config"]["period_ns"] is None
    assert cell["machine"] == {}
    assert (cell["started"], cell["ended"]) == (None, None)
    types = {warning["type"] for warning in cell["warnings"]}
    assert types == {"histogram_overflow", "unit_assumed", "skips_unseen"}


def test_the_default_place_is_that_of_the_machine_in_the_file(
    tmp_path: Path, run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path(run("import", DATA / "cyclictest.json")["run"])
    assert folder.parent == Path("results/target/import")
    assert Path(run("import", DATA / "cyclictest.hist")["run"]).parent.parent.name == "unknown-machine"
    assert json.loads((folder / "run.json").read_text())["cells"] == [
        "cyclictest-thread-0",
        "cyclictest-thread-1",
    ]


def test_values_in_order_become_samples(tmp_path: Path, run, write) -> None:
    values = np.random.default_rng(1).integers(-5_000, 90_000, 3000)
    found = run("import", write(rttest(values), "loop.txt"), "--out", tmp_path / "out")
    (cell,) = found["cells"]
    view, ordered = cell["quantities"]["latency"]["per_release"], np.sort(values)
    for name, share in QUANTILES:
        assert view[name] == ordered[quantile_index(3000, share)]
    assert (view["n"], view["min_ns"], view["max_ns"]) == (3000, ordered[0], ordered[-1])
    assert view["max_at_k"] == values.argmax()
    (chunk,) = store.chunks(tmp_path / "out" / "loop")()
    assert np.array_equal(chunk["latency_ns"], values)
    verdict = run("verdict", tmp_path / "out", "--deadline", "1ms")
    assert verdict["support"]["return_level"] is not None  # the order was looked at


def test_drift_in_imported_samples_is_refused_like_any(tmp_path: Path, run, write) -> None:
    jitter = np.random.default_rng(2).exponential(10_000, 20_000)
    drifting = (jitter + 20 * np.arange(20_000)).astype(int)
    run("import", write(rttest(drifting)), "--out", tmp_path / "out")
    verdict = run("verdict", tmp_path / "out", "--deadline", "1ms", "--miss-ratio", "1%", code=3)
    assert "drift" in {finding["type"] for finding in verdict["support"]["findings"]}


def test_a_series_without_a_period_asks_for_it(tmp_path: Path, run, write) -> None:
    file = write("idx,latency\n0,5100\n1,4900\n")
    error = run("import", file, "--out", tmp_path / "out", code=1)["error"]
    assert error["field"] == "--period" and "--period 1ms" in error["remedy"]
    assert not (tmp_path / "out").exists()
    run("import", file, "--out", tmp_path / "out", "--period", "10ms")
    cell = cell_json(tmp_path / "out" / "file")
    assert (cell["config"]["period_ns"], cell["imported"]["period_from"]) == (10_000_000, "--period")
    assert "period" in cell["imported"]["unknown"]


def test_another_period_than_the_files_is_refused(tmp_path: Path, run) -> None:
    error = run("import", DATA / "cyclictest.json", "--period", "1ms", "--out", tmp_path / "o", code=1)[
        "error"
    ]
    assert (error["field"], error["value"]) == ("--period", "1ms")
    assert "500us" in error["message"]


def test_nothing_is_written_if_one_file_cannot_be_read(tmp_path: Path, run, write) -> None:
    bad = write("hello\n")
    error = run("import", DATA / "cyclictest.json", bad, "--out", tmp_path / "out", code=1)["error"]
    assert error["where"] == str(bad)
    assert not (tmp_path / "out").exists()


def test_two_files_of_one_name_are_told_apart_by_the_user(tmp_path: Path, run, write) -> None:
    (tmp_path / "a").mkdir()
    first, second = write(rttest([1, 2, 3])), write(rttest([1, 2, 3]), "a/file.txt")
    error = run("import", first, second, "--out", tmp_path / "out", code=1)["error"]
    assert "second cell file" in error["message"] and error["where"] == str(second)


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path, run) -> None:
    (tmp_path / "notes.txt").touch()
    error = run("import", DATA / "oslat.json", "--out", tmp_path, code=1)["error"]
    assert error["field"] == "--out"


def test_bad_options_are_named(run) -> None:
    for option, value in (("--period", "often"), ("--deadline", "1"), ("--format", "excel")):
        error = run("import", DATA / "oslat.json", option, value, code=1)["error"]
        assert error["field"] in (option, option.removeprefix("--"))
        assert error["remedy"]


# What verdicts say of data without order.


@pytest.mark.parametrize(
    ("deadline", "ratio", "code", "words"),
    [
        ("1ms", None, 2, "6 to 18 of 2,015"),  # the largest, and five releases that it kept from running
        ("3ms", None, 2, "5 to 15 of 2,015"),
        ("3ms", "2%", 0, "5 to 15 of 2,015"),
        ("3ms", "2%", 0, "a histogram has no order"),
        ("1ms", "5%", 0, "6 to 18 of 2,015"),
        ("1ms", "0.5%", 3, "6 to 18 of 2,015"),
        ("10us", "5%", 2, "at least"),
    ],
)
def test_a_histogram_is_judged_by_what_it_allows(
    deadline: str, ratio: str | None, code: int, words: str, tmp_path: Path, run
) -> None:
    run("import", DATA / "cyclictest.json", "--out", tmp_path / "out")
    asked = ["--deadline", deadline, *(["--miss-ratio", ratio] if ratio else [])]
    verdict = run("verdict", tmp_path / "out" / "cyclictest-thread-0", *asked, code=code)
    assert words in verdict["reason"]
    assert verdict["support"]["findings"][0]["type"] == "no_order"


def test_misses_that_are_not_told_apart_are_told_alike_everywhere(tmp_path: Path, run, capsys) -> None:
    run("import", DATA / "cyclictest.json", "--out", tmp_path / "out")
    folder = tmp_path / "out" / "cyclictest-thread-0"
    asked = ["--deadline", "1ms", "--miss-ratio", "0.5%"]
    assert run("verdict", folder, *asked, code=3)["misses_between"] == [6, 18]
    invoke(["verdict", str(folder), *asked])
    said = capsys.readouterr().out
    assert "6 to 18 of 2,015" in said and "misses           6 to 18" in said
    run("import", DATA / "cyclictest.json", *asked, "--out", tmp_path / "judged", code=3)
    assert invoke(["summary", str(tmp_path / "judged")]) == 0
    assert "6 to 18" in capsys.readouterr().out
    assert invoke(["report", str(tmp_path / "judged")]) == 0
    page, site = (tmp_path / "judged" / "report.html").read_text(), tmp_path / "site"
    assert "<dd>6 to 18 <small>of 2,015</small></dd>" in page
    assert invoke(["site", str(tmp_path / "judged"), "-o", str(site), "--no-reports"]) == 0
    pages = [page, *(one.read_text() for one in (site / "index.html", *(site / "cells").glob("*-0.html")))]
    assert all('data-order="18">6 to 18</td>' in one for one in pages) and len(pages) == 3
    assert '"Misses": "6 to 18"' in (site / "side-by-side.html").read_text()
    out = tmp_path / "out.md"
    assert invoke(["export", str(tmp_path / "judged"), "--format", "markdown", "-o", str(out)]) == 0
    assert "| 6 to 18 |" in out.read_text()


def test_a_deadline_within_a_bin_is_not_decided(tmp_path: Path, run) -> None:
    run("import", DATA / "cyclictest.hist", "--period", "10ms", "--out", tmp_path / "out")
    folder = tmp_path / "out" / "cyclictest-thread-0"
    reasons = [
        run("verdict", folder, "--deadline", deadline, code=code)["reason"]
        for deadline, code in (("2820us", 2), ("2821500ns", 3), ("2822us", 0))
    ]
    assert "1 to 3 of 2,000" in reasons[0]
    assert "0 to 3 of 2,000" in reasons[1] and "known to 1 us" in reasons[1]
    assert "0 of 2,000" in reasons[2]


def test_a_hard_deadline_needs_the_order(tmp_path: Path, run) -> None:
    run("import", DATA / "cyclictest.hist", "--out", tmp_path / "out")
    folder = tmp_path / "out" / "cyclictest-thread-0"
    verdict = run("verdict", folder, "--deadline", "3ms", "--criticality", "hard", code=3)
    assert "order of the releases is not known" in verdict["reason"]


def test_import_judges_if_it_is_asked_to(tmp_path: Path, run) -> None:
    found = run("import", DATA / "cyclictest.json", "--deadline", "1ms", "--out", tmp_path / "out", code=2)
    assert [cell["verdict"]["outcome"] for cell in found["cells"]] == ["fail", "fail"]
    stored = cell_json(tmp_path / "out" / "cyclictest-thread-0")
    assert stored["verdict"]["outcome"] == "fail"
    again = run("verdict", tmp_path / "out", code=2)  # by its own requirement
    assert [verdict["outcome"] for verdict in again["cells"]] == ["fail", "fail"]


@pytest.mark.parametrize(
    ("options", "code", "kept"),
    [
        (["--miss-ratio", "5%", "--confidence", "99%"], 0, (0.05, 0.99, "firm")),
        (["--criticality", "soft", "--miss-ratio", "1e-4"], 2, (1e-4, 0.95, "soft")),
        (["--criticality", "hard"], 2, (None, 0.95, "hard")),
    ],
)
def test_import_judges_by_a_whole_requirement(
    options: list[str], code: int, kept: tuple[object, ...], tmp_path: Path, run
) -> None:
    out = tmp_path / "out"
    run("import", DATA / "cyclictest.json", "--deadline", "2ms", *options, "--out", out, code=code)
    required = cell_json(out / "cyclictest-thread-0")["requirement"]
    assert (required["miss_ratio"], required["confidence"], required["criticality"]) == kept


def test_a_requirement_without_a_deadline_is_refused(tmp_path: Path, run) -> None:
    error = run("import", DATA / "oslat.json", "--criticality", "hard", "--out", tmp_path / "out", code=1)[
        "error"
    ]
    assert (error["field"], error["remedy"]) == ("--criticality", "give --deadline")


def test_what_a_tool_dropped_never_passes(tmp_path: Path, run, write) -> None:
    run("import", write(hist2020({3: 100_000}), "hist.csv"), "--out", tmp_path / "out")
    for more in ([], ["--miss-ratio", "10%"]):
        verdict = run("verdict", tmp_path / "out", "--deadline", "2ms", *more, code=3)
        assert "how many is not known" in verdict["reason"]


def test_releases_passed_over_that_cannot_be_counted_never_pass(tmp_path: Path, run) -> None:
    """The same run: its text says no period, and 10 s hold every wake-up but not what was skipped."""
    file, asked = DATA / "cyclictest.hist", ["--deadline", "10s", "--miss-ratio", "10%"]
    found = run("import", file, *asked, "--out", tmp_path / "text", code=3)
    for cell in found["cells"]:
        assert "import it again with --period" in cell["verdict"]["reason"]
        assert cell["verdict"]["support"]["upper"] is None
    run("import", file, *asked, "--period", "10s", "--out", tmp_path / "period")
    compared = run("compare", tmp_path / "text", tmp_path / "period", "--force", code=3)
    for cell in compared["cells"]:
        by_name = {shift["quantity"]: shift["outcome"] for shift in cell["shifts"]}
        assert by_name["miss_ratio"] == "not enough data" and by_name["p50"] == "no difference"
        assert "skips_unseen" in {doubt["type"] for doubt in cell["doubts"]}


@pytest.mark.parametrize(("largest_us", "skipped"), [(999, False), (1000, True)])
def test_who_came_a_period_late_may_have_passed_over_a_release(
    tmp_path: Path, run, write, largest_us: int, skipped: bool
) -> None:
    run("import", write(json.dumps(cyclictest(max=largest_us)), "loop.json"), "--out", tmp_path / "out")
    (folder,) = store.cell_folders(tmp_path / "out")
    doubts = {doubt["type"] for doubt in cell_json(folder)["warnings"]}
    assert ("skips_unseen" in doubts) == skipped


def test_maxima_of_intervals(tmp_path: Path, run, write) -> None:
    results = [
        {"num_samples_received": 1000, "num_samples_lost": 0, "latency_min": 1e-5, "latency_max": worst}
        for worst in (1e-4, 2e-4, 9e-4)
    ]
    file = write(json.dumps({"perf_test_version": "2.1", "analysis_results": results}), "perf.json")
    run("import", file, "--out", tmp_path / "out")
    verdict = run("verdict", tmp_path / "out", "--deadline", "1ms", "--miss-ratio", "1%")
    assert "of each interval only the latest value is known" in verdict["reason"]
    verdict = run("verdict", tmp_path / "out", "--deadline", "500us", "--miss-ratio", "1%", code=3)
    assert "1 to 1,000 of 3,000" in verdict["reason"]
    cell = cell_json(tmp_path / "out" / "perf")
    assert cell["imported"]["data"] == "intervals"
    assert cell["summary"]["quantities"]["latency"]["per_release"]["max_ns"] == 900_000


# Data at their edges.


def test_all_lost(tmp_path: Path, run, write) -> None:
    result = {"num_samples_received": 0, "num_samples_lost": 50, "latency_min": 1e9, "latency_max": -1e9}
    file = write(json.dumps({"analysis_results": [result, result]}), "perf.json")
    found = run("import", file, "--out", tmp_path / "out", "--deadline", "1ms", code=2)
    (cell,) = found["cells"]
    assert (cell["verdict"]["misses"], cell["verdict"]["lost"]) == (100, 100)
    assert cell["quantities"]["latency"]["per_release"]["p50_ns"] == "lost"


def test_nothing_measured(tmp_path: Path, run, write) -> None:
    document = cyclictest(histogram={}, cycles=0, min=1_000_000, max=0)
    found = run("import", write(json.dumps(document)), "--out", tmp_path / "out", "--deadline", "1ms", code=3)
    assert found["cells"][0]["verdict"]["reason"].endswith("nothing was measured")
    assert invoke(["report", str(tmp_path / "out")]) == 0


def test_three_samples(tmp_path: Path, run, write) -> None:
    run("import", write(rttest([5, 7, 9])), "--out", tmp_path / "out")
    verdict = run("verdict", tmp_path / "out", "--deadline", "1ms", "--miss-ratio", "1e-3", code=3)
    assert verdict["n"] == 3
    run("import", write(hist2020({3: 2, 7: 1}), "h.csv"), "--out", tmp_path / "hist")
    assert run("verdict", tmp_path / "hist", "--deadline", "1ms", code=3)["n"] == 3


def test_constant_data(tmp_path: Path, run, write) -> None:
    run("import", write(rttest([7_500] * 5000)), "--out", tmp_path / "out")
    verdict = run("verdict", tmp_path / "out", "--deadline", "1ms", "--criticality", "hard", code=3)
    assert "constant" in {finding["type"] for finding in verdict["support"]["findings"]}


def test_one_enormous_outlier(tmp_path: Path, run, write) -> None:
    values = np.random.default_rng(3).integers(10_000, 90_000, 3000)
    values[1234] = 40 * 10**9
    found = run("import", write(rttest(values)), "--out", tmp_path / "out", "--deadline", "1ms", code=2)
    (cell,) = found["cells"]
    assert cell["verdict"]["misses"] == 1
    assert (cell["quantities"]["latency"]["per_release"]["max_at_k"]) == 1234
    document = cyclictest(histogram={"10": 5000}, cycles=5001, max=40_000_000)
    file = write(json.dumps(document), "outlier.json")
    found = run("import", file, "--out", tmp_path / "hist", "--deadline", "1ms", code=2)
    assert found["cells"][0]["quantities"]["latency"]["per_release"]["max_ns"] == 40 * 10**9


# The other commands.


def later(late_us: int) -> str:
    counts = {str(us + late_us): 1000 for us in range(20, 80)}
    return json.dumps(cyclictest(histogram=counts, cycles=60_000, min=20 + late_us, max=79 + late_us))


def outcome(found: dict[str, Any]) -> str:
    (cell,) = found["cells"]
    return str(cell["outcome"])


def test_a_comparison_of_histograms(tmp_path: Path, run, write) -> None:
    for name, late_us in (("before", 0), ("same", 0), ("later", 9)):
        run("import", write(later(late_us), f"{name}.json"), "--out", tmp_path / name)
    deadline = ["--deadline", "75us"]
    assert outcome(run("compare", tmp_path / "before", tmp_path / "same", *deadline)) == "no difference"
    assert outcome(run("compare", tmp_path / "before", tmp_path / "later", *deadline, code=2)) == "worse"
    assert outcome(run("compare", tmp_path / "later", tmp_path / "before", *deadline)) == "better"


def test_other_quantities_are_not_compared(tmp_path: Path, run, write) -> None:
    run("import", write(later(0), "a.json"), "--period", "1ms", "--out", tmp_path / "a")
    run("import", DATA / "oslat.json", "--period", "1ms", "--out", tmp_path / "b")
    found = run("compare", tmp_path / "a", tmp_path / "b", code=1)
    assert "another quantity" in json.dumps(found)


def test_summaries_and_reports_take_imported_cells(
    tmp_path: Path, run, write, capsys: pytest.CaptureFixture[str]
) -> None:
    run("import", DATA / "cyclictest.json", "--out", tmp_path / "all" / "hist")
    run("import", write(rttest([5, 7, 9])), "--out", tmp_path / "all" / "series")
    result = {"num_samples_received": 9, "num_samples_lost": 0, "latency_min": 1e-5, "latency_max": 1e-4}
    file = write(json.dumps({"analysis_results": [result]}), "perf.json")
    run("import", file, "--out", tmp_path / "all" / "intervals")
    assert len(run("summary", tmp_path / "all")["cells"]) == 4
    assert invoke(["summary", str(tmp_path / "all")]) == 0
    shown = capsys.readouterr().out
    assert "not stated by the file: version, unit, machine, time, options" in shown
    assert "cyclictest -q -t2 -i 500" in shown
    assert invoke(["report", str(tmp_path / "all")]) == 0
    page = (tmp_path / "all" / "report.html").read_text()
    assert "imported from cyclictest.json" in page
    assert page.count("figcaption><b>Complementary CDF") == 3  # two histograms and the series
    assert page.count("figcaption><b>Over time") == 1


def test_a_damaged_histogram_is_said(tmp_path: Path, run) -> None:
    run("import", DATA / "oslat.json", "--out", tmp_path / "out")
    (tmp_path / "out" / "oslat" / "histogram.parquet").write_bytes(b"junk")
    error = run("verdict", tmp_path / "out", "--deadline", "1ms", code=1)["error"]
    assert error["where"].endswith("histogram.parquet") and "import" in error["remedy"]
