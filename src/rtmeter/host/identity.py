"""Which machine this is: two robots cloned from one image have one host name, and are two machines."""

from __future__ import annotations

import hashlib
import hmac
import uuid

from rtmeter.host.root import Root

_APPLICATION = uuid.UUID("6a5b1f0e-3b0c-4f4e-9d5a-8f3f6a1d2c77")
"""rtmeter's own, so that what is told here says nothing of other programs' names for the machine."""

_FILES = ("/etc/machine-id", "/var/lib/dbus/machine-id")
SHORT = 8
"""Digits that tell the few machines of one host name apart."""


def machine_id(root: Root) -> str | None:
    """A name of the machine that only rtmeter gives it, 32 digits; None where it has none.

    Its own id is confidential and never stored: this is its HMAC-SHA256 over the application's id, as
    machine-id(5) asks for and ``systemd-id128 machine-id --app-specific`` prints it.
    """
    for file in _FILES:
        try:
            own = uuid.UUID(root.read(file) or "")
        except ValueError:  # "uninitialized", or none
            continue
        digest = hmac.new(own.bytes, _APPLICATION.bytes, hashlib.sha256).digest()
        return uuid.UUID(bytes=digest[:16], version=4).hex
    return None
