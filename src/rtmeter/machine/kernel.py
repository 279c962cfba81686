"""The kernel: how far it can be preempted, and what it was built with."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rtmeter.machine.finding import KERNEL_CONFIGURATION, KERNEL_PARAMETERS, Finding, Grade, Kind
from rtmeter.machine.reading import Machine

NOT_PREEMPT_RT = Kind(
    "kernel_not_preempt_rt",
    "fatal",
    "without PREEMPT_RT the kernel is not fully preemptible: interrupt handlers and locks of the kernel "
    "keep a real-time thread from running, for no time that anyone has bounded",
    KERNEL_CONFIGURATION,
)
PREEMPTION_MODEL = Kind(
    "preemption_model",
    "high",
    "with voluntary or no preemption a system call of any task keeps the CPU until it ends",
    f"{KERNEL_PARAMETERS}, preempt=",
    "echo full > /sys/kernel/debug/sched/preempt; for good: boot with preempt=full",
)
CONFIG_UNREADABLE = Kind(
    "kernel_config",
    "high",
    "options of the kernel's build raise its worst latency, which no setting takes back",
    KERNEL_CONFIGURATION,
)

_BUILD = "build the kernel with {option}={value}, or install your distribution's real-time kernel"
_RT_PACKAGES = {
    "debian": "apt install linux-image-rt-{debian}",
    "ubuntu": "pro enable realtime-kernel",
    "fedora": "build a kernel with CONFIG_PREEMPT_RT=y",
    "rhel": "dnf install kernel-rt",
    "arch": "pacman -S linux-rt",
}
_DEBIAN_NAMES = {"X86_64": "amd64", "ARM64": "arm64", "ARM": "armmp"}
_DEBIAN_MACHINES = {"aarch64": "arm64", "armv7l": "armmp", "armv8l": "armmp"}
_FIRST_EFI_OPTION = (5, 19)
"""Of CONFIG_EFI_DISABLE_RUNTIME; PREEMPT_RT before had it in any case."""

_MODELS = {
    "PREEMPT_NONE": "none",
    "PREEMPT_VOLUNTARY": "voluntary",
    "PREEMPT_LAZY": "lazy",
    "PREEMPT": "full",
}
"""Option of the build → what a kernel does that is not told otherwise."""

_EITHER = "none or voluntary"
_MODEL = "/sys/kernel/debug/sched/preempt"


def _option(
    option: str, expected: str, grade: Grade, why: str, source: str = KERNEL_CONFIGURATION
) -> tuple[str, str, Kind]:
    kind = Kind(
        f"config_{option.lower()}",
        grade,
        why,
        source,
        _BUILD.format(option=f"CONFIG_{option}", value=expected),
    )
    return option, expected, kind


_HIGHRES = "Linux Documentation/timers/highres.rst"
_DEBUGGING = "a debugging option of the kernel adds work to its paths, and so to its worst latency"
_OPTIONS = (
    _option("CPU_FREQ", "y", "high", "without it the CPU stays at whatever clock the firmware chose"),
    _option("HIGH_RES_TIMERS", "y", "high", "without it timers end with the tick", _HIGHRES),
    _option("IRQSOFF_TRACER", "n", "high", "this tracer costs latency also when nothing is traced"),
    _option("PREEMPT_TRACER", "n", "high", "this tracer costs latency also when nothing is traced"),
    _option("PROVE_LOCKING", "n", "high", "proving each lock of the kernel raises its worst latency much"),
    _option("KASAN", "n", "high", _DEBUGGING),
    _option("KCSAN", "n", "high", _DEBUGGING),
    _option("DEBUG_PREEMPT", "n", "medium", _DEBUGGING),
    _option("DEBUG_LOCK_ALLOC", "n", "medium", _DEBUGGING),
    _option("DEBUG_SPINLOCK", "n", "medium", _DEBUGGING),
    _option("DEBUG_MUTEXES", "n", "medium", _DEBUGGING),
    _option("DEBUG_RT_MUTEXES", "n", "medium", _DEBUGGING),
    _option("DEBUG_OBJECTS", "n", "medium", _DEBUGGING),
    _option("DEBUG_KMEMLEAK", "n", "medium", _DEBUGGING),
    _option("DEBUG_PAGEALLOC", "n", "medium", _DEBUGGING),
    _option("DEBUG_VM", "n", "medium", _DEBUGGING),
    _option("SLUB_DEBUG_ON", "n", "medium", _DEBUGGING),
    _option("LOCK_STAT", "n", "medium", _DEBUGGING),
    _option("CPU_IDLE", "y", "info", "without it idle CPUs burn power, and heat makes them slower"),
    _option("TRACING", "y", "info", "without it the cause of a late release cannot be traced"),
    _option("DRM", "n", "info", "a graphics processor shares caches and memory bandwidth with the CPUs"),
)
EFI_RUNTIME = Kind(
    "efi_runtime",
    "medium",
    "a call into EFI firmware, as for its variables, may keep interrupts off while it lasts",
    KERNEL_CONFIGURATION,
    "boot with efi=noruntime",
)
NO_HZ = Kind(
    "no_hz",
    "medium",
    "stopping the tick adds book-keeping to each way into and out of the kernel; a periodic loop is "
    "better served by a steady tick",
    KERNEL_CONFIGURATION,
    "boot with nohz=off",
)

KINDS = (
    NOT_PREEMPT_RT,
    PREEMPTION_MODEL,
    CONFIG_UNREADABLE,
    *(kind for *_, kind in _OPTIONS),
    EFI_RUNTIME,
    NO_HZ,
)


def check(machine: Machine) -> Iterator[Finding]:
    """Preemption and build options."""
    yield from _preemption(machine)
    if machine.config is None:
        yield CONFIG_UNREADABLE.unknown(
            f"neither /proc/config.gz nor /boot/config-{machine.release} can be read", fix="modprobe configs"
        )
        return
    for option, expected, kind in _OPTIONS:
        if machine.built_with(option) != (expected == "y"):
            yield kind.found(f"CONFIG_{option}={machine.config.get(option, 'n')}")
    if machine.built_with("EFI") and _has_efi_runtime(machine):
        yield EFI_RUNTIME.found("CONFIG_EFI_DISABLE_RUNTIME=n, booted without efi=noruntime")
    modes = [option for option in ("NO_HZ_IDLE", "NO_HZ_FULL", "NO_HZ") if machine.built_with(option)]
    if modes and "nohz=off" not in machine.command_line:
        yield NO_HZ.found(f"CONFIG_{modes[0]}=y, booted without nohz=off")


def _has_efi_runtime(machine: Machine) -> bool:
    """Whether the kernel was booted by EFI (a container may hide that) and calls into it."""
    firmware = machine.root.glob("/sys/firmware/*")
    if firmware and "/sys/firmware/efi" not in firmware:
        return False
    on = not machine.built_with("EFI_DISABLE_RUNTIME")
    if machine.is_preempt_rt and machine.kernel is not None and machine.kernel < _FIRST_EFI_OPTION:
        on = False
    for word in machine.command_line:
        given = word.removeprefix("efi=").split(",") if word.startswith("efi=") else []
        if word == "noefi" or "noruntime" in given:
            on = False
        elif "runtime" in given:
            on = True
    return on


def _preemption(machine: Machine) -> Iterator[Finding]:
    if machine.is_preempt_rt is None:
        yield NOT_PREEMPT_RT.unknown(machine.why_not("/proc/sys/kernel/version"), fix="uname -v")
    if machine.is_preempt_rt is not False:
        return
    model = _model(machine)
    version = machine.text("/proc/sys/kernel/version") or "no PREEMPT_RT"
    about = f"{version} ({model})" if model else version
    yield NOT_PREEMPT_RT.found(f"Linux {machine.release} {about}", fix=_real_time_kernel(machine))
    if model is None:
        fix = "mount -t debugfs none /sys/kernel/debug (as root; a locked-down kernel refuses)"
        yield PREEMPTION_MODEL.unknown(machine.why_not(_MODEL), fix=fix)
    elif model in ("none", "voluntary", _EITHER):
        reservation = "" if _model_in_effect(machine) else f", as built or booted: {machine.why_not(_MODEL)}"
        yield PREEMPTION_MODEL.found(f"{model}{reservation}", fix=_more_preemption(machine))


def _more_preemption(machine: Machine) -> str:
    """What makes this kernel preemptible: where debugfs is not mounted, that comes first; without the choice
    no command and no boot parameter does."""
    if _model_in_effect(machine) is not None:
        return PREEMPTION_MODEL.fix
    if not _is_dynamic(machine) and (_says_choice(machine) or machine.built_with("PREEMPT_DYNAMIC") is False):
        return "boot a kernel built with CONFIG_PREEMPT=y or CONFIG_PREEMPT_DYNAMIC=y"
    lasting = "for good, or where the kernel is locked down and refuses that:"
    return f"mount -t debugfs none /sys/kernel/debug; {PREEMPTION_MODEL.fix.replace('for good:', lasting)}"


def _is_dynamic(machine: Machine) -> bool:
    return "PREEMPT_DYNAMIC" in (machine.text("/proc/sys/kernel/version") or "")


def _model(machine: Machine) -> str | None:
    """``none``, ``voluntary``, ``lazy`` or ``full``; None if nothing says so."""
    if (model := _model_in_effect(machine)) is not None:
        return model
    if _is_dynamic(machine):
        given = [word for word in machine.command_line if word.startswith("preempt=")]
        return given[-1].removeprefix("preempt=") if given else _model_built(machine)
    return _model_built(machine) or (_model_named(machine) if _says_choice(machine) else None)


def _says_choice(machine: Machine) -> bool:
    """Whether the version would tell that the model can be chosen: there is that choice since Linux 5.12, and
    the version tells it since 5.16."""
    if machine.kernel is None or not machine.text("/proc/sys/kernel/version"):
        return False
    return not (5, 12) <= machine.kernel < (5, 16)


def _model_named(machine: Machine) -> str:
    """By the version alone, of a kernel without that choice."""
    return "full" if "PREEMPT" in (machine.text("/proc/sys/kernel/version") or "").split() else _EITHER


def _model_in_effect(machine: Machine) -> str | None:
    """The one in brackets of a list; None if it cannot be read, or the kernel has no choice."""
    match = re.search(r"\((\w+)\)", machine.text(_MODEL) or "")
    return match[1] if match else None


def _model_built(machine: Machine) -> str | None:
    return next((model for option, model in _MODELS.items() if machine.built_with(option)), None)


def _real_time_kernel(machine: Machine) -> str:
    release = (machine.text("/etc/os-release") or "").replace('"', "").splitlines()
    facts = dict(line.split("=", 1) for line in release if "=" in line)
    names = (facts.get("ID", ""), *facts.get("ID_LIKE", "").split())
    command = next((_RT_PACKAGES[name] for name in names if name in _RT_PACKAGES), "")
    debian = next((name for key, name in _DEBIAN_NAMES.items() if machine.built_with(key)), None)
    debian = debian or _DEBIAN_MACHINES.get(machine.architecture, "amd64")
    return command.format(debian=debian) or "boot a kernel built with CONFIG_PREEMPT_RT=y"
