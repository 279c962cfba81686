"""What a command does not need it does not import: a start is felt."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def imported_of(code: str, packages: str) -> str:
    """Which of the packages a new interpreter has imported after running the code; pandas is there."""
    look = f"import sys; {code}; print(sorted(set({packages.split()}) & set(sys.modules)), file=sys.stderr)"
    with_pandas = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    command = [sys.executable, "-c", look]
    return subprocess.run(command, env=with_pandas, capture_output=True, text=True, check=True).stderr


def test_help_imports_nothing_heavy() -> None:
    heavy = "numpy pyarrow pydantic scipy duckdb altair yaml deltalake ibis pyspark"
    assert imported_of("from rtmeter import cli; cli.invoke(['--help'])", heavy) == "[]\n"


def test_a_measurement_imports_nothing_that_it_does_not_need() -> None:
    needless = "duckdb jinja2 pyarrow.dataset scipy.optimize scipy.stats vl_convert deltalake ibis pyspark"
    assert imported_of("import rtmeter.measure.cell", needless) == "[]\n"


def test_a_whole_measurement_imports_no_more(tmp_path: Path) -> None:
    """Neither what tells its result: pandas, which Arrow takes where it is installed, costs most."""
    needless = "duckdb jinja2 pandas scipy.fft scipy.optimize scipy.special scipy.stats vl_convert "
    needless += "deltalake ibis pyspark"
    cell = tmp_path / "cell"
    asked = ["measure", "wakeup", "--adapter=null", "--samples=20", "--warm-up=5ms", f"--out={cell}"]
    printed = imported_of(f"from rtmeter import cli; cli.invoke({asked})", needless)
    assert printed.splitlines()[-1] == "[]"
    assert (cell / "samples.parquet").is_file()
    page = tmp_path / "page.html"
    printed = imported_of(
        f"from rtmeter import cli; cli.invoke(['report', '{cell}', '-o', '{page}'])", "pandas"
    )
    assert printed.splitlines()[-1] == "[]"
    assert page.is_file()
