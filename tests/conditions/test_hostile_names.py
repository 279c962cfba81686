"""Names that a shell would run, wherever names may come from: files and groups of another machine, what it
answers, journals, results. Nothing of them runs; everything arrives as it was."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from planted_kernel import planted

from rtmeter.campaign.condition_options import SystemSettings
from rtmeter.conditions import journal
from rtmeter.conditions.resources import File, from_json, to_json
from rtmeter.conditions.restore import restore
from rtmeter.conditions.settings import Settings
from rtmeter.errors import RtmeterError
from rtmeter.host.remote_root import RemoteRoot
from rtmeter.host.remote_shell import Shell
from rtmeter.host.ssh import PROGRAM, Ssh
from rtmeter.measure.probe.places import There
from rtmeter.measure.probe.probes import Probe

CANARY = "canary"
RUNS = [
    f"$(touch {CANARY})",
    f"`touch {CANARY}`",
    f";touch {CANARY};",
    f"\ntouch {CANARY}\n",
    f"|touch {CANARY}",
]
RUNS += [f"&& touch {CANARY} #", f"'; touch {CANARY} '", f'"; touch {CANARY} "', f">{CANARY}", f"*{CANARY}"]
PIECES = [*RUNS, "'", '"', "\\", "\n", " ", "$IFS", "-n", "--", "~", "a", "é", "\x1b[2J", "{a,b}", "!!", "%s"]
NAMES = st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map("".join)
FILES = NAMES.filter(lambda name: name not in (".", "..") and len(name.encode()) < 200).map(
    lambda name: name.replace("/", "_")
)

no_fixture_is_reset = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@pytest.fixture
def canary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that a name would make; shells run in its folder."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder / CANARY


@pytest.fixture
def there(tmp_path: Path, canary: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RemoteRoot]:
    program = tmp_path / "ssh"
    program.write_text('#!/bin/sh\nfor last; do :; done\nexec sh -c "$last"\n')
    program.chmod(0o755)
    monkeypatch.setenv(PROGRAM, str(program))
    monkeypatch.setenv("HOME", str(canary.parent))  # a login shell reads no profile of this user
    shell = Shell(Ssh("ssh://there", "hosts.component"))
    shell.run(f"cd '{canary.parent}'")
    yield RemoteRoot(shell=shell)
    shell.close()


@no_fixture_is_reset
@given(name=FILES, text=NAMES)
def test_files_of_another_machine(
    there: RemoteRoot, canary: Path, tmp_path: Path, name: str, text: str
) -> None:
    path = tmp_path / "files" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("")
    there.write(str(path), text)
    assert path.read_text() == text
    assert there.exists(str(path)) and there.read_bytes(str(path)) == text.encode()
    assert there.real_path(str(path)) == str(path).strip()
    assert there.run(["printf", "%s", text]) == (0, text)
    there.has_program(name)
    assert there.glob(f"{tmp_path}/files/{name}") is not None
    there.read_all([str(path), name])
    path.unlink()
    there.make_folder(str(path))
    assert path.is_dir()
    there.remove_folder(str(path))
    assert not path.exists() and not canary.exists()


@no_fixture_is_reset
@given(name=FILES)
def test_groups_that_a_probe_is_put_into(canary: Path, tmp_path: Path, name: str) -> None:
    made = Settings(SystemSettings(), planted(tmp_path / "root"))
    made._groups = [f"/sys/fs/cgroup/{name}"]
    group = tmp_path / "root" / "sys" / "fs" / "cgroup" / name
    group.mkdir(exist_ok=True)
    done = subprocess.run(
        [*made.launcher(None), "echo", "joined"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "joined\n", "")
    assert (group / "cgroup.procs").read_text().strip().isdecimal()
    assert not canary.exists()


ANSWER = """\
#!/bin/sh
for last; do :; done
if test -e asked; then exec sh -c "$last"; fi
touch asked
cat answer
"""


@settings(no_fixture_is_reset, max_examples=40)
@given(machine=FILES, installed=FILES, folder=FILES, name=FILES)
def test_what_another_machine_answers(
    canary: Path, tmp_path: Path, machine: str, installed: str, folder: str, name: str
) -> None:
    """Its architecture, where it has the probe, and the folder it made: one line each, of any content."""
    answer = [line.replace("\n", "_") for line in (machine, installed, folder)]
    Path("answer").write_text("\n".join(answer))
    Path("asked").unlink(missing_ok=True)
    program = tmp_path / "ssh"
    program.write_text(ANSWER)
    program.chmod(0o755)
    image = tmp_path / "probe"
    image.write_bytes(bytes(32))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(PROGRAM, str(program))
        place = There(Ssh("ssh://there", "hosts.component"))
        with contextlib.suppress(RtmeterError):  # it has no such probe
            place.command(Probe(name, image, {}), {"log": str(tmp_path / "log"), "role": "server"}, tmp_path)
        with contextlib.suppress(RtmeterError):
            place.collect()
    assert not canary.exists()


@settings(no_fixture_is_reset, max_examples=40)
@given(name=FILES)
def test_the_name_of_a_probe(there: RemoteRoot, canary: Path, tmp_path: Path, name: str) -> None:
    image = tmp_path / "probe"
    image.write_bytes(b"\x7fELF" + bytes(60))
    with contextlib.suppress(RtmeterError):  # it has no such probe
        There(there.shell.ssh).look(Probe(name, image, {}))
    assert not canary.exists()


HOSTILE_VALUES = st.one_of(NAMES, st.integers(), st.none(), st.booleans(), st.lists(NAMES, max_size=2))


@no_fixture_is_reset
@given(tid=HOSTILE_VALUES, start=HOSTILE_VALUES, comm=HOSTILE_VALUES, old=HOSTILE_VALUES, n=HOSTILE_VALUES)
def test_journals(
    there: RemoteRoot,
    canary: Path,
    state_folder: Path,
    tid: object,
    start: object,
    comm: object,
    old: object,
    n: object,
) -> None:
    """A hostile line is told as not known, or does no more than a journal may: nothing is raised or run."""
    resource = {"kind": "policy", "tid": tid, "start": start, "comm": comm}
    line = {"n": n, "boot": "", "setting": "irq_priority", "resource": resource, "old": old, "new": "other"}
    path = journal.path_of(there.host)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(journal._line(line))
    restore(there)
    path.unlink(missing_ok=True)
    assert not canary.exists()
    if type(tid) is not int:
        with pytest.raises(ValueError, match="no kind"):
            from_json(resource)


def test_a_thread_that_is_no_number_reaches_no_shell(there: RemoteRoot, canary: Path) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        there.set_policy(f"1; touch {canary}", "fifo", 1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="invalid literal"):
        there.set_affinity(f"1; touch {canary}", [0])  # type: ignore[arg-type]
    assert not canary.exists()


@pytest.mark.parametrize("number", ["1", "x", 1.5, True, None, [1]])
def test_a_journal_line_whose_number_is_none_is_not_heeded(tmp_path: Path, number: object) -> None:
    there = to_json(File("/proc/sys/kernel/x"))
    change = {"n": number, "boot": "", "setting": "x", "resource": there, "old": "0", "new": "1"}
    path = tmp_path / "journal"
    path.write_bytes(journal._line(change) + journal._line(change | {"n": 2}))
    past = journal.read(path)
    assert [entry.number for entry in past.entries] == [2]
    assert past.unknown == ("line 1 is damaged: what it says is not known",)
