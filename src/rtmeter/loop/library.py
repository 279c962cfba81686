"""librtmeter's shared library, as rtmeter/loop.h has it."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path

from rtmeter.errors import RtmeterError

NAME = "librtmeter.so.0"
DUE_UNKNOWN = -(2**63)

LATE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


class Options(ctypes.Structure):
    """rtm_loop_options."""

    _fields_ = (
        ("size", ctypes.c_size_t),
        ("folder", ctypes.c_char_p),
        ("deadline_ns", ctypes.c_int64),
        ("miss_ratio", ctypes.c_double),
        ("warm_up_ns", ctypes.c_int64),
        ("whole_ns", ctypes.c_int64),
        ("late_bytes", ctypes.c_int64),
        ("flags", ctypes.c_uint32),
        ("on_late", LATE),
        ("context", ctypes.c_void_p),
    )


@cache
def library() -> ctypes.CDLL:
    """The library of RTMETER_LIBRARY, of the wheel, of this checkout's build, or of the system.

    Raises RtmeterError if there is none.
    """
    package = Path(__file__).parents[1]
    build = package.parents[1] / "build" / "release" / "librtmeter"
    places = [os.environ.get("RTMETER_LIBRARY"), package / "lib" / NAME, build / NAME]
    found = next((str(place) for place in places if place and Path(place).is_file()), NAME)
    try:
        loaded = ctypes.CDLL(found)
        loaded.rtm_loop_open.restype = ctypes.c_void_p
    except (OSError, AttributeError) as error:
        remedy = "install rtmeter's wheel, run `make install`, or set RTMETER_LIBRARY to the file"
        raise RtmeterError(
            f"cannot be loaded: {error}", field="library", value=found, remedy=remedy
        ) from None
    text, size, handle = ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p
    loaded.rtm_loop_open.argtypes = [text, ctypes.c_int64, ctypes.POINTER(Options), text, size]
    loaded.rtm_loop_sleep.argtypes, loaded.rtm_loop_sleep.restype = [handle], ctypes.c_int64
    loaded.rtm_loop_wake.argtypes, loaded.rtm_loop_wake.restype = [handle, ctypes.c_int64], None
    loaded.rtm_loop_done.argtypes, loaded.rtm_loop_done.restype = [handle], None
    loaded.rtm_loop_close.argtypes = [handle, text, size]
    return loaded
