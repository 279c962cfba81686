"""Peak memory of a child process, as the code that it runs can tell."""

PEAK_KIB = """
def peak_kib():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
"""
"""Defines ``peak_kib()``. Not getrusage: its maximum counts what the parent held before the exec, too."""
