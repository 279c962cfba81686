"""What cannot be set: which setting, why, what would help; and all that was set before is undone."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path
from typing import Any

import pytest
from planted_kernel import CPU, CPUSET, V2, PlantedKernel, planted

from rtmeter.campaign.condition_options import SystemSettings
from rtmeter.conditions import journal
from rtmeter.conditions.settings import Settings
from rtmeter.errors import RtmeterError

MIGRATION = "/proc/sys/kernel/timer_migration"
RT_RUNTIME = "/proc/sys/kernel/sched_rt_runtime_us"


def refused(kernel: PlantedKernel, **asked: Any) -> RtmeterError:
    """The error of settings that come after another one, which is undone."""
    before = kernel.snapshot()
    with pytest.raises(RtmeterError) as caught, Settings(SystemSettings.model_validate(asked), kernel):
        pass
    assert kernel.snapshot() == before
    return caught.value


@pytest.mark.parametrize(
    ("number", "message", "remedy"),
    [
        (errno.EACCES, f"no permission to change {MIGRATION}", "root"),
        (errno.EPERM, f"no permission to change {MIGRATION}", "root"),
        (errno.EROFS, f"{MIGRATION} is read-only here", "--privileged"),
        (errno.EINVAL, f"the kernel refuses to change {MIGRATION} to '0': invalid argument", "NO_HZ"),
    ],
)
def test_a_refusal_says_which_why_and_what_would_allow_it(
    tmp_path: Path, number: int, message: str, remedy: str
) -> None:
    error = refused(
        planted(tmp_path / "root", refused={MIGRATION: number}), governor="performance", timer_migration="off"
    )
    assert (error.field, error.value, error.message) == ("conditions.timer_migration", "off", message)
    assert remedy in str(error.remedy)


@pytest.mark.parametrize("uid", [0, 1000])
def test_a_thread_names_the_capability_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uid: int
) -> None:
    monkeypatch.setattr(PlantedKernel, "is_superuser", lambda self: uid == 0)
    error = refused(planted(tmp_path / "root", refused={"policy 15": errno.EPERM}), ksoftirqd_priority=60)
    assert "no permission to change ksoftirqd/1 (thread 15)" in error.message
    assert "CAP_SYS_NICE" in str(error.remedy)
    assert ("sudo" in str(error.remedy)) == (uid != 0)


def test_what_is_accepted_and_not_in_effect_is_an_error(tmp_path: Path, state_folder: Path) -> None:
    error = refused(planted(tmp_path / "root", deaf={MIGRATION}), rt_throttling="off", timer_migration="off")
    assert str(error) == (
        f"conditions.timer_migration = 'off': was set but is not in effect: {MIGRATION} reads '1', not '0'; "
        "leave it out: a kernel without NO_HZ moves no timers"
    )
    assert not (state_folder / journal.FILE).exists()


@pytest.mark.parametrize(
    ("removed", "asked", "field", "message", "remedy"),
    [
        (MIGRATION, {"timer_migration": "off"}, "timer_migration", "there is no", "NO_HZ"),
        (
            "/proc/irq",
            {"irq_cpus": {"eth0": 1}},
            "irq_cpus.eth0",
            "no interrupts in /proc/irq",
            "container",
        ),
        (
            "/proc/irq",
            {"irq_priority": {"eth0": 9}},
            "irq_priority.eth0",
            "no interrupts in /proc/irq",
            "container",
        ),
        ("/proc/50", {"irq_priority": {"eth0": 9}}, "irq_priority.eth0", "without threads", "PREEMPT_RT"),
        ("/proc/1", {"irq_cpus": {"eth1": 1}}, "irq_cpus.eth1", "has no interrupts", "eth0-rx-0"),
        (
            "/sys/devices/system/cpu/cpufreq",
            {"governor": "performance"},
            "governor",
            "no frequency scaling",
            "leave",
        ),
        ("/proc/1", {"governor": "powersave"}, "governor", "does not offer it", "performance or schedutil"),
        ("/proc/self/mountinfo", {"isolate": 1}, "isolate", "there are no cpusets", "mount"),
        (CPU, {"rt_runtime": "1ms"}, "rt_runtime", "no such groups", "leave it out"),
        (
            "/proc/1",
            {"isolate": "0-3", "stray_tasks": "move"},
            "stray_tasks",
            "would be left",
            "leave one out",
        ),
    ],
)
def test_what_a_machine_lacks_is_named(
    tmp_path: Path, removed: str, asked: dict[str, Any], field: str, message: str, remedy: str
) -> None:
    kernel = planted(tmp_path / "root")
    path = kernel.at(removed)
    path.unlink() if path.is_file() else shutil.rmtree(path)
    error = refused(kernel, **asked)
    assert error.field == f"conditions.{field}"
    assert message in error.message
    assert remedy in str(error.remedy)


def test_what_cannot_be_had_is_left_out_where_that_is_asked_for(tmp_path: Path, state_folder: Path) -> None:
    kernel = planted(tmp_path / "root", refused={"policy 15": errno.EPERM})
    before = kernel.snapshot()
    asked = {"irq_cpus": {"eth1": 1}, "ksoftirqd_priority": 60, "timer_migration": "off"}
    settings = SystemSettings.model_validate(asked | {"unavailable": "leave_out"})
    with Settings(settings, kernel) as standing:
        facts = standing.facts()
        assert kernel.read(MIGRATION) == "0"
        assert kernel.snapshot() | {MIGRATION: before[MIGRATION]} == before, "nothing of the others stays"
    assert kernel.snapshot() == before
    assert list(facts["effective"]["settings"]) == ["timer_migration"]
    assert list(facts["left_out"]) == ["irq_cpus", "ksoftirqd_priority"]
    assert "eth1 has no interrupts here" in facts["left_out"]["irq_cpus"]
    assert "no permission to change ksoftirqd/1" in facts["left_out"]["ksoftirqd_priority"]
    assert [doubt.type for doubt in standing.doubts()] == ["setting_left_out", "setting_left_out"]
    assert standing.failure() is None
    assert not (state_folder / journal.FILE).exists()


def test_settings_that_build_on_each_other_are_left_out_together(tmp_path: Path) -> None:
    kernel = planted(tmp_path / "root")
    shutil.rmtree(kernel.at(CPU))
    before = kernel.snapshot()
    asked = {"isolate": "1", "rt_runtime": "500ms", "unavailable": "leave_out"}
    with Settings(SystemSettings.model_validate(asked), kernel) as standing:
        assert list(standing.facts()["left_out"]) == ["isolate, rt_runtime"]
        assert standing.launcher() == []
        assert kernel.snapshot() == before
    assert kernel.snapshot() == before


def test_a_strict_cell_fails_where_a_setting_was_left_out(tmp_path: Path) -> None:
    settings = SystemSettings.model_validate({"irq_cpus": {"eth1": 1}, "unavailable": "leave_out"})
    with Settings(settings, planted(tmp_path / "root"), strict=True) as standing:
        pass
    failure = standing.failure()
    assert failure is not None and failure.field == "conditions.irq_cpus.eth1"


@pytest.mark.parametrize(
    ("asked", "field", "value", "message", "remedy"),
    [
        ({"irq_cpus": {"eth0": "1,9"}}, "irq_cpus.eth0", "1,9", "CPU 9 does not exist", "0-3"),
        ({"workqueue_cpus": "5"}, "workqueue_cpus", "5", "CPU 5 does not exist", "choose among 0-3"),
        ({"isolate": "3-4"}, "isolate", "3-4", "CPU 4 does not exist", "choose among 0-3"),
        (
            {"rt_throttling": "2s"},
            "rt_throttling",
            "2s",
            "more than the period of throttling, 1s",
            "1s or less",
        ),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_changed(
    tmp_path: Path, asked: dict[str, Any], field: str, value: str, message: str, remedy: str
) -> None:
    kernel = planted(tmp_path / "root")
    error = refused(kernel, **asked)
    assert kernel.changes == []
    assert (error.field, error.value) == (f"conditions.{field}", value)
    assert message in error.message
    assert remedy in str(error.remedy)


@pytest.mark.parametrize(
    ("file", "asked", "value", "written"),
    [
        ("/sys/devices/virtual/workqueue/cpumask", {"workqueue_cpus": "0,2"}, "0,2", "00000005"),
        (RT_RUNTIME, {"rt_throttling": "900ms"}, "900ms", "900000"),
        ("policy 14", {"ksoftirqd_priority": 60}, 60, "fifo:60"),
    ],
)
def test_a_refusal_shows_what_was_asked_and_what_was_written(
    tmp_path: Path, file: str, asked: dict[str, Any], value: object, written: str
) -> None:
    error = refused(planted(tmp_path / "root", refused={file: errno.EINVAL}), **asked)
    assert error.value == value
    assert f" to {written!r}: invalid argument" in error.message


def test_a_container_shows_interrupts_read_only(tmp_path: Path) -> None:
    file = "/proc/irq/30/smp_affinity_list"
    error = refused(planted(tmp_path / "root", refused={file: errno.EROFS}), irq_cpus={"eth0": 1})
    assert (error.field, error.message) == ("conditions.irq_cpus.eth0", f"{file} is read-only here")


def test_root_hears_that_the_kernel_may_manage_an_interrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PlantedKernel, "is_superuser", lambda self: True)
    file = "/proc/irq/30/smp_affinity_list"
    error = refused(planted(tmp_path / "root", refused={file: errno.EPERM}), irq_cpus={"eth0": 1})
    assert "--privileged" in str(error.remedy) and "manage this interrupt" in str(error.remedy)


def test_of_all_interrupts_those_that_refuse_are_doubted(tmp_path: Path) -> None:
    managed = {f"/proc/irq/{irq}/smp_affinity_list": errno.EIO for irq in (31, 40)}
    kernel = planted(tmp_path / "root", refused=managed)
    asked = SystemSettings.model_validate({"irq_cpus": {"*": 0}})
    with Settings(asked, kernel) as standing:
        assert kernel.read("/proc/irq/24/smp_affinity_list") == "0"
    (doubt,) = standing.doubts()
    assert (doubt.type, standing.failure()) == ("setting_refused", None)
    assert "/proc/irq/31" in doubt.message and doubt.message.endswith("(and 1 more)")
    with Settings(asked, kernel, strict=True) as strict:
        failure = strict.failure()
    assert failure is not None and failure.field == "conditions.irq_cpus.*"


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_what_one_may_not_do_at_all_is_no_doubt_about_one_of_many(tmp_path: Path, number: int) -> None:
    """The kernel may keep one interrupt where it is; who may move none is told so, and the cell fails."""
    forbidden = {"/proc/irq/31/smp_affinity_list": number}
    error = refused(planted(tmp_path / "root", refused=forbidden), irq_cpus={"*": 0})
    assert (error.field, error.value) == ("conditions.irq_cpus.*", "0")
    assert "/proc/irq/31/smp_affinity_list" in error.message


def test_a_share_of_normal_tasks_that_cannot_be_taken_is_doubted(tmp_path: Path) -> None:
    kernel = planted(tmp_path / "root")
    shutil.rmtree(kernel.at("/sys/kernel/debug"))
    asked = SystemSettings.model_validate({"rt_throttling": "off"})
    for release, doubted in (("6.11.2-rt", False), ("6.12.0", True), ("7.0.1", True)):
        kernel.plant("/proc/sys/kernel/osrelease", release)
        with Settings(asked, kernel) as standing:
            assert kernel.read(RT_RUNTIME) == "-1"
        assert [doubt.type for doubt in standing.doubts()] == ["setting_refused"] * doubted
        assert "debugfs" in "".join(doubt.hint for doubt in standing.doubts()) or not doubted


def test_a_partition_that_the_kernel_calls_invalid_is_an_error(tmp_path: Path) -> None:
    file = f"{V2}/rtmeter/cpuset.cpus.partition"
    kernel = planted(tmp_path / "root", version=2, deaf={file})
    error = refused(kernel, isolate="1", stray_tasks="move")
    assert error.field == "conditions.stray_tasks"
    assert "reads 'member', not 'root'" in error.message


def test_a_group_of_that_name_is_not_taken_over(tmp_path: Path) -> None:
    kernel = planted(tmp_path / "root")
    kernel.make_folder(f"{CPUSET}/rtmeter")
    error = refused(kernel, isolate="1")
    assert error.message == f"there is a group {CPUSET}/rtmeter already"
    assert "rmdir" in str(error.remedy)


def test_nothing_is_changed_where_no_journal_can_be_written(tmp_path: Path, state_folder: Path) -> None:
    state_folder.write_text("a file, no folder")
    kernel = planted(tmp_path / "root")
    error = refused(kernel, timer_migration="off")
    assert (error.field, kernel.changes) == ("journal", [])
    assert "nothing is changed" in error.message


def test_a_journal_that_takes_no_more_is_no_setting_to_be_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise RtmeterError("cannot be written: no space left on device", field="journal")

    monkeypatch.setattr(journal.Journal, "intend", full)
    kernel = planted(tmp_path / "root")
    error = refused(kernel, timer_migration="off", unavailable="leave_out")
    assert (error.field, kernel.changes) == ("journal", [])


def test_nothing_is_changed_over_a_journal_that_is_not_undone(tmp_path: Path, state_folder: Path) -> None:
    state_folder.mkdir()
    (state_folder / journal.FILE).write_text("")
    kernel = planted(tmp_path / "root")
    error = refused(kernel, timer_migration="off")
    assert (error.remedy, kernel.changes) == ("run `rtmeter restore`", [])


def test_what_cannot_be_put_back_is_said_and_stays_in_the_journal(tmp_path: Path, state_folder: Path) -> None:
    kernel = planted(tmp_path / "root")
    with Settings(SystemSettings.model_validate({"rt_throttling": "900ms"}), kernel) as standing:
        kernel.refused[RT_RUNTIME] = errno.EPERM
    (doubt,) = standing.doubts()
    assert doubt.type == "setting_not_put_back"
    assert "could not be put back to '950000'" in doubt.message
    assert len(journal.read(state_folder / journal.FILE).entries) == 1


def test_an_error_says_what_of_the_settings_before_it_could_not_be_undone(tmp_path: Path) -> None:
    class Stubborn(PlantedKernel):
        def write(self, name: str, text: str) -> None:
            if name == RT_RUNTIME and self.changes:
                raise OSError(errno.EBUSY, "Device or resource busy")
            super().write(name, text)

    kernel = Stubborn(planted(tmp_path / "root", deaf={MIGRATION}).path, deaf={MIGRATION})
    asked = SystemSettings.model_validate({"rt_throttling": "900ms", "timer_migration": "off"})
    with (
        pytest.raises(RtmeterError, match=r"not all is as it was: .*busy; run `rtmeter restore`"),
        Settings(asked, kernel),
    ):
        pass


def test_what_was_left_out_and_could_not_be_undone_stays_in_the_journal(
    tmp_path: Path, state_folder: Path
) -> None:
    first, second = (f"/sys/devices/system/cpu/cpufreq/policy{n}/scaling_governor" for n in (0, 2))

    class Stubborn(PlantedKernel):
        def write(self, name: str, text: str) -> None:
            if name == first and name in self.changes:
                raise OSError(errno.EPERM, "Operation not permitted")
            super().write(name, text)

    kernel = Stubborn(planted(tmp_path / "root").path, refused={second: errno.EPERM})
    asked = SystemSettings.model_validate({"governor": "performance", "unavailable": "leave_out"})
    with Settings(asked, kernel) as standing:
        pass
    left_out, stays = standing.doubts()
    assert (left_out.type, stays.type) == ("setting_left_out", "setting_not_put_back")
    assert f"{first}: could not be put back to 'powersave'" in stays.message
    entries = journal.read(state_folder / journal.FILE).entries
    assert [entry.resource.name for entry in entries] == [first, second]
