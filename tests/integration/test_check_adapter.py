"""Every adapter that is built here keeps the contract, and one that does not is caught by the check that is
named after what it does wrong."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest
from contract import BUILD, assert_kept, check_adapter, failures
from namespaces import multicast_network

from rtmeter.measure.probe.probes import find_probes

TEMPLATES = {
    "template": BUILD / "adapters" / "template" / "cpp",
    "two-processes": BUILD / "adapters" / "template" / "two_processes",
    "rust-template": BUILD / "adapters" / "template" / "rust",
}
WRAPPED = BUILD / "tests" / "probe" / "wrapped"
"""The templates again, with faults (tests/probe/wrapped_probe.cpp)."""

FEW = {"null", "posix", "zeromq", "lcm", "ecal", "template", "two-processes"}
"""Those that have no tests of their own, or few, and the least of each shape: they are checked whole."""

DAEMONS = "iceoryx"
"""Of its daemon a machine has one: test_check_iceoryx.py."""

MERGED = ("echo.", "isolation.", "hangs.server", "errors.")
LEFT_TO_IT = dict.fromkeys(("rcl", "cyclonedds", "fastdds", "dustdds"), MERGED)
LEFT_TO_IT |= {
    "ros1": ("echo.", "hangs.server_killed", "hangs.server_stopped.request")
}  # a master for each run: seconds
LEFT_TO_IT |= {"fastdds3": ("echo.",)}  # the source of fastdds
"""Adapters whose own tests leave so much to it (docs/add-a-middleware.md); whole in the full test."""


def chosen() -> list[object]:
    """Adapters that are built, and what is checked of them."""
    whole = pytest.mark.full_only("its own tests run")
    parts = [(name, "") for name in sorted({*find_probes(), *TEMPLATES} - {DAEMONS})]
    parts += [(name, only) for name in sorted(LEFT_TO_IT.keys() & find_probes()) for only in LEFT_TO_IT[name]]
    return [
        pytest.param(name, only, marks=[] if only or name in FEW else [whole], id=f"{name} {only}".strip())
        for name, only in parts
    ]


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("name", "only"), chosen())
def test_every_adapter_that_is_built_keeps_the_contract(name: str, only: str) -> None:
    folder = TEMPLATES.get(name)
    if folder is not None and not (folder / f"rtmeter-probe-{name}").exists():
        pytest.skip("not built here")
    with multicast_network() if name == "lcm" else nullcontext([]) as inside:
        code, report = check_adapter(name, *(["--only", only] if only else []), folder=folder, inside=inside)
    assert_kept(code, report, only)


@pytest.mark.parametrize(
    ("fault", "only", "caught"),
    [
        ("no_version", "describe", {"describe.before_start": "version is missing"}),
        ("lies_about_drives", "describe", {"describe.before_start": "drives.cycle, but not in measures"}),
        ("wrong_echo", "echo.roundtrip.poll", {"echo.roundtrip.poll": "corrupted"}),
        ("twice", "echo.roundtrip.poll", {"echo.roundtrip.poll": "duplicate"}),
        ("loses_all", "echo.roundtrip.poll", {"echo.roundtrip.poll": "messages are lost"}),
        ("refuses", "echo.roundtrip.poll", {"echo.roundtrip.poll": "were refused"}),
        ("answers_itself", "echo.roundtrip.poll", {"echo.roundtrip.poll": "that the server never had"}),
        (
            "calls_back_elsewhere",
            "echo.roundtrip.spin",
            {
                "echo.roundtrip.spin": "by the middleware's, not rtm-receiver",
                "echo.roundtrip.spin.open": "by the middleware's, not rtm-receiver",
                "echo.roundtrip.spin_once": "by the middleware's, not the measured one",
            },
        ),
        ("waits_for_answers", "hangs.server_stopped", {"hangs.server_stopped": "has not come back"}),
        ("wrong_reply", "echo.request.service.poll", {"echo.request.service.poll": "corrupted"}),
        ("shares_topics", "isolation", {"isolation.sessions": "heard"}),
        ("spin_does_not_block", "timeouts.roundtrip.spin", {"timeouts.roundtrip.spin": "it does not block"}),
        ("wait_does_not_block", "spin_once", {"timeouts.roundtrip.spin_once": "it does not block"}),
        (
            "ignores_timeout",
            "timeouts.roundtrip.spin_once",
            {"timeouts.roundtrip.spin_once": "until it was interrupted"},
        ),
        (
            "ignores_interrupt",
            "interrupt.roundtrip.spin",
            {"interrupt.roundtrip.spin": "exit code 1"},
        ),
        ("hangs", "timeouts.roundtrip.spin", {"timeouts.roundtrip.spin": "never came back"}),
        ("hangs_at_the_end", "interrupt.server", {"interrupt.server": "does not end"}),
        ("takes_any_option", "errors", {"errors.unknown_option": "not refused by its name"}),
        ("undeclared_thread", "threads.roundtrip", {"threads.roundtrip": "does not declare"}),
    ],
)
def test_a_fault_is_caught_by_the_check_named_after_it(
    tmp_path: Path, fault: str, only: str, caught: dict[str, str]
) -> None:
    if not WRAPPED.is_dir():
        pytest.skip("the C++ tests are not built")
    shared = {"RTMETER_TEST_SHARED": str(tmp_path / "shared")}
    code, report = check_adapter(
        "two-processes", "--only", only, folder=WRAPPED, RTMETER_TEST_FAULT=fault, **shared
    )
    assert code == 2, report
    found = failures(report)
    for name, reason in caught.items():
        assert reason in found[name], found
    wrong = [check for check in report["checks"] if check["outcome"] == "fail"]
    assert all(check["remedy"] for check in wrong)


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("periodic", "callbacks came before it was reported to be due"),
        ("one_shot", "for another time than they were armed for"),
    ],
)
def test_a_timer_that_reports_another_time_is_caught(mode: str, reason: str) -> None:
    if not WRAPPED.is_dir():
        pytest.skip("the C++ tests are not built")
    check = f"echo.timer.{mode}.spin"
    code, report = check_adapter(
        "template", "--only", check, folder=WRAPPED, RTMETER_TEST_FAULT="reports_another_time"
    )
    assert code == 2, report
    assert reason in failures(report)[check]


@pytest.mark.parametrize(
    ("name", "fault", "words"),
    [
        ("template", "no_spin", "drives.timer = spin: timer.periodic needs spin"),
        ("template", "no_arm", "drives.timer = spin: timer.one_shot needs arm"),
        ("two-processes", "no_reply", "receives.request = spin: request needs reply"),
    ],
)
def test_a_drive_whose_methods_are_missing_is_refused_when_it_describes_itself(
    name: str, fault: str, words: str
) -> None:
    if not WRAPPED.is_dir():
        pytest.skip("the C++ tests are not built")
    code, report = check_adapter(name, folder=WRAPPED, RTMETER_TEST_FAULT=fault)
    assert code == 1
    assert words in report["error"]["message"]


def test_a_check_that_is_none_is_refused_by_name() -> None:
    code, report = check_adapter("posix", "--only", "no such check")
    assert code == 1
    assert report["error"]["field"] == "--only"
