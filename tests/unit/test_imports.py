"""What a command does not need it does not import: a start is felt."""

from __future__ import annotations

import subprocess
import sys


def imported_of(code: str, packages: str) -> str:
    """Which of the packages a new interpreter has imported after running the code."""
    look = f"import sys; {code}; print(sorted(set({packages.split()}) & set(sys.modules)), file=sys.stderr)"
    return subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stderr


def test_help_imports_nothing_heavy() -> None:
    heavy = "numpy pyarrow pydantic scipy duckdb altair yaml"
    assert imported_of("from rtmeter import cli; cli.invoke(['--help'])", heavy) == "[]\n"


def test_a_measurement_imports_nothing_that_it_does_not_need() -> None:
    needless = "duckdb jinja2 pyarrow.dataset scipy.optimize scipy.stats vl_convert"
    assert imported_of("import rtmeter.measure.cell", needless) == "[]\n"
