"""CPUs that are asked for must be there: the kernel may take a list that holds others and leave those out."""

from __future__ import annotations

from collections.abc import Collection

from rtmeter.errors import RtmeterError
from rtmeter.host.root import Root
from rtmeter.host.threads import cpu_set
from rtmeter.values import format_cpus

_ONLINE = "/sys/devices/system/cpu/online"


def require_online(cpus: Collection[int], field: str, root: Root) -> None:
    """Raises RtmeterError that names the CPUs which the machine does not have, or which are off there.

    Nothing is refused where the kernel does not list them.
    """
    online = cpu_set(root.read(_ONLINE))
    missing = set(cpus) - online
    if online and missing:
        message = f"CPU {format_cpus(missing)} does not exist here, or is off"
        remedy = f"choose among {format_cpus(online)}"
        raise RtmeterError(message, field=field, value=format_cpus(cpus), remedy=remedy)
