"""One change of a setting, and what is said when the kernel does not make it."""

from __future__ import annotations

import errno
from dataclasses import dataclass

from rtmeter.conditions.resources import Resource
from rtmeter.errors import RtmeterError
from rtmeter.host.root import Root
from rtmeter.model import LOCAL


@dataclass(frozen=True, slots=True)
class Change:
    """``resource`` is to become ``value`` for the setting (a key of ``conditions``).

    ``remedy``: what helps if the kernel refuses. ``covered``: it goes with a group that rtmeter made, so
    nothing needs undoing. ``optional``: the kernel may keep this one as it is, which is a doubt, no error.
    ``needs``: the privilege for it. ``remembered``: other changes have this one in their wake; it is not made
    but undone.
    """

    setting: str
    resource: Resource
    value: str
    remedy: str
    covered: bool = False
    optional: bool = False
    needs: str = "root"
    remembered: bool = False

    def missing(self) -> RtmeterError:
        """What is to be changed is not there."""
        return self.error(f"there is no {self.resource.name} here", self.remedy)

    def refused(self, error: OSError, root: Root) -> RtmeterError:
        """The kernel did not take it."""
        reason = (error.strerror or str(error)).lower()
        if error.errno in (errno.EACCES, errno.EPERM):
            become = "run rtmeter as root (sudo)" if root.host == LOCAL else "log in there as root"
            remedy = f"it needs {self.needs}: {become}"
            if root.is_superuser():
                lacking = f"root lacks it here ({self.needs}), as in a container without --privileged"
                remedy = f"{lacking}; or else: {self.remedy}"
            return self.error(f"no permission to change {self.resource.name}", remedy)
        if error.errno == errno.EROFS:
            remedy = "a container shows it so: run rtmeter on the host, or the container with --privileged"
            return self.error(f"{self.resource.name} is read-only here", remedy)
        message = f"the kernel refuses to change {self.resource.name} to {self.value!r}: {reason}"
        return self.error(message, self.remedy)

    def unreadable(self, error: OSError) -> RtmeterError:
        """What it is now is not told."""
        reason = (error.strerror or str(error)).lower()
        return self.error(f"{self.resource.name} cannot be read: {reason}", self.remedy)

    def not_effective(self, found: str | None) -> RtmeterError:
        """It was accepted, and reads back as something else."""
        message = f"was set but is not in effect: {self.resource.name} reads {found!r}, not {self.value!r}"
        return self.error(message, self.remedy)

    def error(self, message: str, remedy: str) -> RtmeterError:
        """An error about this setting."""
        return refuse(self.setting, message, remedy)


def refuse(setting: str, message: str, remedy: str) -> RtmeterError:
    """The error for a setting that cannot be had here; Settings adds the value that was asked for."""
    return RtmeterError(message, field=f"conditions.{setting}", remedy=remedy)
