"""What a shell is told, by its own protocol: commands, options, and the values that options take."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtmeter import cli
from synthetic import Made, write_cell


def completed(line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What bash would offer for the last word of the line."""
    words = line.split(" ")
    monkeypatch.setenv("_RTMETER_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"rtmeter {line}")
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    with pytest.raises(SystemExit) as end:
        cli.invoke([])
    assert end.value.code == 0
    return capsys.readouterr().out.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("ver", ["verdict"]),
        ("measure w", ["wakeup"]),
        ("measure wakeup --child-c", ["--child-cpus"]),
        ("measure timer --mode ", ["one_shot", "periodic"]),
        ("measure wakeup --load c", ["cpu80"]),
        ("measure wakeup --scheduling ", ["other", "fifo:", "rr:", "deadline:"]),
        ("measure wakeup --child-threads ", ["other", "fifo:", "rr:"]),
        ("measure wakeup --condition irq_", ["irq_cpus=", "irq_priority="]),
        ("measure roundtrip --host ", ["controller=", "component="]),
        ("export --format c", ["csv", "cyclictest-hist"]),
        ("import --format jit", ["jitterdebugger"]),
        ("plot --kind s", ["shift"]),
        ("check --workload ", ["cyclic", "roundtrip"]),
        ("archive merge --engine ", ["duckdb", "spark"]),
        ("archive trend --quantile p99.99", ["p99.99", "p99.999"]),
        ("verdict --criticality ", ["hard", "firm", "soft"]),
        ("bundle --arch a", ["aarch64", "armhf"]),
        ("plan --find-max ", ["rate", "payload", "subscribers", "publishers", "background_nodes"]),
        ("explain --self-test --only thr", ["throttled"]),
        ("explain --self-test --only above,mut", ["above,mutex", "above,mutex_inheriting"]),
    ],
)
def test_values(
    line: str, offered: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert completed(line, monkeypatch, capsys) == offered


@pytest.mark.usefixtures("fake_probe")
def test_adapters_are_those_that_are_here(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert completed("measure wakeup --adapter f", monkeypatch, capsys) == ["fake"]
    assert completed("check-adapter ", monkeypatch, capsys) == ["fake"]
    shown = completed("adapters f", monkeypatch, capsys)
    assert shown == ["fake", "fastdds", "fastdds3"]  # says how to have them, too


def test_floors_and_factors_are_those_of_the_cells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert completed("layers --floor ", monkeypatch, capsys) == []  # there is no results/
    for folder, adapter in (("results", "posix"), ("elsewhere", "null")):
        for load in ("idle", "cpu80"):
            made = Made(id=f"cell-{load}", samples=10, adapter=adapter, axes={"load": load})
            write_cell(Path(folder) / load, made)
    assert completed("layers --floor ", monkeypatch, capsys) == ["posix", "cell-cpu80", "cell-idle"]
    assert completed("layers elsewhere --floor n", monkeypatch, capsys) == ["null"]
    assert completed("layers --force elsewhere --floor n", monkeypatch, capsys) == ["null"]
    assert completed("compare elsewhere --factor ", monkeypatch, capsys) == ["load"]
    assert completed("compare --factor x", monkeypatch, capsys) == []


@pytest.mark.parametrize("command", ["run", "plan"])
def test_campaigns(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "campaigns").mkdir()
    for name in ("campaigns/demo.yaml", "campaigns/text.md", "own.yml", ".hidden.yaml"):
        (tmp_path / name).touch()
    first = completed(f"{command} ", monkeypatch, capsys)
    assert first == ["campaigns/", "own.yml", "campaigns/demo.yaml"]
    assert completed(f"{command} o", monkeypatch, capsys) == ["own.yml"]
    assert completed(f"{command} campaigns/", monkeypatch, capsys) == ["campaigns/demo.yaml"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_each_shell(
    shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")  # what runs pytest is no shell
    monkeypatch.setattr(cli, "_built", cli._built.__wrapped__)
    with pytest.raises(SystemExit) as end:
        cli.invoke(["--show-completion", shell])
    assert end.value.code == 0
    assert f"_RTMETER_COMPLETE=complete_{shell}" in capsys.readouterr().out
