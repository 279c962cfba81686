"""Generates C and Python code of what is sent by the rosidl of PyPI's ROS 2 packages: generate.py OUT FILE...

A ROS 2 that was sourced has CMake functions for it. Those of the packages name folders that are not there,
and their command finds each of its own parts twice; so their parts are called here.
"""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

os.environ["AMENT_PREFIX_PATH"] = sys.prefix  # where the parts look for their templates

from rosidl_generator_c.cli import GenerateC
from rosidl_generator_py.cli import GeneratePython
from rosidl_typesupport_c.cli import GenerateCTypesupport
from rosidl_typesupport_fastrtps_c.cli import GenerateFastRTPSCTypesupport

PACKAGE = "rtmeter_msgs"
SUPPORT = ["rosidl_typesupport_fastrtps_c"]
NEEDED = ["action_msgs", "builtin_interfaces", "service_msgs", "unique_identifier_msgs"]
"""What services and actions are made of."""

share = [str(Path(sys.prefix) / "share" / package) for package in NEEDED]

out, files = Path(sys.argv[1]), sys.argv[2:]
with redirect_stdout(StringIO()), redirect_stderr(StringIO()):  # a line for each duplicate and each file
    GenerateC("c").generate(PACKAGE, files, share, out)
    GenerateFastRTPSCTypesupport("fastrtps_c").generate(PACKAGE, files, share, out)
    GenerateCTypesupport("c", typesupport_implementations=SUPPORT).generate(PACKAGE, files, share, out)
    GeneratePython("py", typesupport_implementations=["rosidl_typesupport_c"]).generate(
        PACKAGE, files, share, out
    )
