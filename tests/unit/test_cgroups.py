"""Where the groups of a controller are, by what /proc says of the mounts and of the process."""

from __future__ import annotations

from pathlib import Path

import pytest

from rtmeter.host.cgroups import Hierarchy, find
from rtmeter.host.root import Root

V2 = "25 1 0:22 {} /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw"
V1 = "31 25 0:27 {} /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct"


def planted(folder: Path, mounts: list[str], groups: str, controllers: str = "cpuset cpu") -> Root:
    files = {
        "proc/self/mountinfo": "\n".join(mounts),
        "proc/self/cgroup": groups,
        "sys/fs/cgroup/cgroup.controllers": controllers,
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{text}\n")
    return Root(folder)


@pytest.mark.parametrize(
    ("inside", "path", "own"),
    [
        ("/", "/", "/sys/fs/cgroup"),
        ("/", "/user.slice/robot", "/sys/fs/cgroup/user.slice/robot"),
        ("/", "/../beside", "/sys/fs/cgroup"),
        ("/docker/abc", "/docker/abc", "/sys/fs/cgroup"),
        ("/docker/abc", "/docker/abc/robot", "/sys/fs/cgroup/robot"),
        ("/docker/abc", "/docker/abcdef/robot", "/sys/fs/cgroup"),
        ("/docker/abc", "/user.slice", "/sys/fs/cgroup"),
    ],
)
def test_a_group_that_the_mount_does_not_show_is_taken_for_its_top(
    tmp_path: Path, inside: str, path: str, own: str
) -> None:
    found = find("cpu", planted(tmp_path, [V2.format(inside)], f"0::{path}"))
    assert found == Hierarchy("cpu", 2, "/sys/fs/cgroup", own)


def test_the_first_version_is_taken_where_it_has_the_controller(tmp_path: Path) -> None:
    root = planted(tmp_path, [V2.format("/"), V1.format("/")], "3:cpu,cpuacct:/a\n0::/b", "cpuset")
    assert find("cpu", root) == Hierarchy("cpu", 1, "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu/a")
    assert find("cpuset", root) == Hierarchy("cpuset", 2, "/sys/fs/cgroup", "/sys/fs/cgroup/b")
    assert find("memory", root) is None


def test_groups_above_go_from_the_mount_down_and_the_measured_one_is_where_it_may_be_made() -> None:
    top, own = "/sys/fs/cgroup", "/sys/fs/cgroup/a/b"
    one, two = (Hierarchy("cpu", version, top, own) for version in (1, 2))
    assert one.above() == two.above() == [top, f"{top}/a", own]
    assert Hierarchy("cpu", 2, top, top).above() == [top]
    assert (one.group, two.group) == (f"{own}/rtmeter", f"{top}/rtmeter")
