"""What the kernel makes of a value by itself, and two settings of one thing: all is as it was afterwards."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from planted_kernel import CPU, V2, PlantedKernel, planted

from rtmeter.campaign.condition_options import SystemSettings
from rtmeter.conditions.resources import Controller
from rtmeter.conditions.restore import restore
from rtmeter.conditions.settings import Settings
from rtmeter.errors import RtmeterError

RT_RUNTIME = "/proc/sys/kernel/sched_rt_runtime_us"
AFFINITY = "/proc/irq/40/smp_affinity_list"
GOVERNOR = "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor"
SPEED = "/sys/devices/system/cpu/cpufreq/policy0/scaling_setspeed"


def settings(kernel: PlantedKernel, **asked: Any) -> Settings:
    return Settings(SystemSettings.model_validate(asked), kernel)


class Rounding(PlantedKernel):
    """It makes other values of those that it is given, and takes the ones from before as they are."""

    def write(self, name: str, text: str) -> None:
        made = {(RT_RUNTIME, "900000"): "900096", (AFFINITY, "0"): "0-1"}
        super().write(name, made.get((name, text.strip()), text))


def test_a_value_that_the_kernel_rounds_is_an_error_and_is_put_back(tmp_path: Path) -> None:
    kernel = Rounding(planted(tmp_path / "root").path)
    before = kernel.snapshot()
    with (
        pytest.raises(RtmeterError, match=f"{RT_RUNTIME} reads '900096', not '900000'"),
        settings(kernel, rt_throttling="900ms"),
    ):
        pass
    assert kernel.snapshot() == before


def test_a_value_that_the_kernel_rounds_and_may_is_rtmeters_to_put_back(tmp_path: Path) -> None:
    kernel = Rounding(planted(tmp_path / "root").path)
    before = kernel.snapshot()
    with settings(kernel, irq_cpus={"*": "0"}) as standing:
        assert kernel.read(AFFINITY) == "0-1"
    assert [doubt.type for doubt in standing.doubts()] == ["setting_refused"]
    assert kernel.snapshot() == before


@dataclass(frozen=True, slots=True)
class Clocked(PlantedKernel):
    """A processor whose governor ``userspace`` begins with the clock that it finds; ``rounds``: what it makes
    of a clock that is asked for."""

    rounds: dict[str, str] = field(default_factory=dict)

    def write(self, name: str, text: str) -> None:
        PlantedKernel.write(self, name, self.rounds.get(text.strip(), text) if name == SPEED else text)
        if name == GOVERNOR:
            self.plant(SPEED, "2000000" if text.strip() == "userspace" else "<unsupported>")


@pytest.fixture
def clocked(tmp_path: Path) -> Clocked:
    kernel = Clocked(planted(tmp_path / "root").path)
    kernel.plant(GOVERNOR, "userspace")
    kernel.plant(SPEED, "1200000")
    return kernel


def test_the_clock_that_somebody_chose_is_put_back_after_the_governor(clocked: Clocked) -> None:
    before = clocked.snapshot()
    with settings(clocked, governor="performance") as standing:
        assert (clocked.read(GOVERNOR), clocked.read(SPEED)) == ("performance", "<unsupported>")
    assert standing.doubts() == []
    assert clocked.snapshot() == before


def test_the_clock_that_somebody_chose_is_put_back_of_a_run_that_was_killed(clocked: Clocked) -> None:
    before = clocked.snapshot()
    settings(clocked, governor="performance").__enter__()  # never left
    restored = restore(clocked)
    assert restored.whole
    assert clocked.snapshot() == before


def test_the_clock_is_its_own_affair_where_somebody_chose_another_governor_since(clocked: Clocked) -> None:
    with settings(clocked, governor="performance") as standing:
        clocked.write(GOVERNOR, "powersave\n")
    assert {doubt.type for doubt in standing.doubts()} == {"setting_changed_meanwhile"}
    assert (clocked.read(GOVERNOR), clocked.read(SPEED)) == ("powersave", "<unsupported>")


@pytest.mark.parametrize(("set_khz", "endings"), [("1212000", set()), ("1260000", {"setting_not_put_back"})])
def test_the_hardware_may_round_the_clock_but_not_to_another_one(
    clocked: Clocked, set_khz: str, endings: set[str]
) -> None:
    with settings(clocked, governor="performance") as standing:
        clocked.rounds["1200000"] = set_khz
    assert {doubt.type for doubt in standing.doubts()} == endings
    assert (clocked.read(GOVERNOR), clocked.read(SPEED)) == ("userspace", set_khz)


def test_a_group_without_a_limit_is_not_given_one(tmp_path: Path) -> None:
    kernel = planted(tmp_path / "root")
    kernel.plant(RT_RUNTIME, "-1")
    kernel.plant(f"{CPU}/cpu.rt_runtime_us", "-1")
    with settings(kernel, rt_runtime="500ms"):
        assert kernel.read(f"{CPU}/cpu.rt_runtime_us") == "-1"
        assert kernel.read(f"{CPU}/rtmeter/cpu.rt_runtime_us") == "500000"


@pytest.mark.parametrize("unavailable", [None, "leave_out"])
def test_two_devices_that_share_an_interrupt_cannot_have_it_each_its_own_way(
    tmp_path: Path, unavailable: str | None
) -> None:
    kernel = planted(tmp_path / "root")
    kernel.plant("/sys/kernel/irq/40/actions", "xhci_hcd,can0")
    before = kernel.snapshot()
    given = {"irq_cpus": {"can0": "1", "xhci_hcd": "0"}, "unavailable": unavailable}
    with settings(kernel, irq_cpus={"can0": "1", "xhci_hcd": "1"}) as standing:
        assert set(standing.facts()["effective"]["settings"]) == {"irq_cpus.can0", "irq_cpus.xhci_hcd"}
    if unavailable:
        with settings(kernel, **given) as standing:
            pass
        said = [doubt.message for doubt in standing.doubts() if doubt.type == "setting_left_out"]
    else:
        with pytest.raises(RtmeterError) as caught, settings(kernel, **given):
            pass
        assert (caught.value.field, caught.value.value) == ("conditions.irq_cpus.xhci_hcd", "0")
        said = [caught.value.message]
    (message,) = said
    assert f"makes {AFFINITY} 0, which conditions.irq_cpus.can0 makes 1" in message
    assert kernel.snapshot() == before


def test_groups_that_were_given_cpus_use_the_cpuset_controller_alone(tmp_path: Path) -> None:
    kernel = planted(tmp_path / "root", version=2)
    kernel.plant(f"{V2}/cgroup.subtree_control", "cpu cpuset")
    kernel.plant(f"{V2}/docker/cpuset.cpus", "2")
    seen = [Controller(f"{V2}/cgroup.subtree_control", name).read(kernel) for name in ("cpu", "cpuset")]
    assert seen == ["+", "+, used by docker"]


@pytest.mark.parametrize(
    ("file", "text"), [("cgroup.subtree_control", "cpuset memory"), ("cpuset.cpus", "2")]
)
def test_a_controller_that_others_use_by_now_is_left_to_them(tmp_path: Path, file: str, text: str) -> None:
    kernel = planted(tmp_path / "root", version=2)
    asked = SystemSettings.model_validate({"isolate": "1"})
    with Settings(asked, kernel, strict=True) as standing:
        kernel.plant(f"{V2}/docker/{file}", text)
    assert (kernel.read(f"{V2}/cgroup.subtree_control") or "").split() == ["cpu", "cpuset"]
    (used,) = [undone for undone in standing._undone if not undone.ending.startswith("restored")]
    assert (used.ending, used.now) == ("changed_since", "+, used by docker")
    assert standing.doubts() == [] and standing.failure() is None
    assert not kernel.exists(f"{V2}/rtmeter")
