"""What an own tracefs instance takes, on planted machines: what is missing is named."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from rtmeter.campaign.condition_options import SystemSettings
from rtmeter.conditions.journal import JournalEntry
from rtmeter.conditions.resources import MADE, from_json, to_json
from rtmeter.conditions.settings import Settings
from rtmeter.conditions.tracing import USUAL, Instance, Mount, own_instance, sweep
from rtmeter.conditions.undo import undo
from rtmeter.errors import RtmeterError
from rtmeter.host.root import Root


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Root:
    """A machine with tracefs that is not mounted, and root on it."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    plant(tmp_path, "proc/filesystems", "nodev\tsysfs\nnodev\ttracefs\n")
    plant(tmp_path, "proc/mounts", "proc /proc proc rw 0 0\n")
    (tmp_path / "proc/self/ns").mkdir(parents=True)
    (tmp_path / "proc/self/ns/pid").symlink_to("pid:[4026531836]")
    return Root(tmp_path)


def plant(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


def test_it_is_mounted_where_it_is_not_and_each_run_has_an_instance_of_its_own(planted: Root) -> None:
    mount, instance = own_instance(planted)
    assert (mount.resource, mount.value) == (Mount(USUAL), MADE)
    assert instance.resource.name.startswith(f"{USUAL}/instances/rtmeter-")
    assert [*own_instance(planted)][1].resource.name != instance.resource.name


def test_where_it_is_mounted_it_is_used(planted: Root) -> None:
    plant(planted.path, "proc/mounts", "t /debug/tracing tracefs rw 0 0\n")
    (instance,) = own_instance(planted)
    assert instance.resource.name.startswith("/debug/tracing/instances/rtmeter-")
    plant(planted.path, "proc/mounts", f"t /debug/tracing tracefs rw 0 0\nt {USUAL} tracefs rw 0 0\n")
    (instance,) = own_instance(planted)
    assert instance.resource.name.startswith(f"{USUAL}/instances/")


def refused(root: Root) -> str:
    with pytest.raises(RtmeterError) as error:
        list(own_instance(root))
    assert error.value.field == "explain"
    return str(error.value)


def test_what_is_missing_is_named(planted: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    link = planted.at("/proc/self/ns/pid")
    link.unlink()
    link.symlink_to("pid:[4026532000]")
    assert "is in a PID namespace" in refused(planted)
    plant(planted.path, "proc/filesystems", "nodev\tsysfs\n")
    assert "finds no tracefs in this kernel; use a kernel with CONFIG_TRACING" in refused(planted)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "needs root: tracefs is root's alone; run rtmeter as root (sudo)" in refused(planted)


def test_an_instance_is_made_taken_away_and_kept_in_a_journal(planted: Root) -> None:
    instance = Instance("/t/instances/rtmeter-1")
    planted.at("/t/instances").mkdir(parents=True)
    assert instance.read(planted) is None
    instance.write(planted, MADE)
    assert instance.read(planted) == MADE
    for resource in (instance, Mount(USUAL)):
        assert from_json(to_json(resource)) == resource
    instance.write(planted, None)
    assert instance.read(planted) is None


def test_a_mount_that_others_use_by_now_is_left_to_them(planted: Root, tmp_path: Path) -> None:
    entry = JournalEntry(0, "", "explain", Mount("/t"), None, MADE)
    (planted.path / "t/instances/exp1").mkdir(parents=True)
    (undone,) = undo([entry], planted)
    assert (undone.ending, undone.now, undone.settled) == ("changed_since", "used by exp1", True)
    assert Mount("/t").same(undone.now, MADE), "it is mounted all the same"
    standing = Settings(SystemSettings(), planted, strict=True)
    standing._undone = [undone]
    assert standing.doubts() == [] and standing.failure() is None, "that disturbs nobody"
    (planted.path / "t/instances/exp1").rename(planted.path / "t/instances/rtmeter-4000001-0123")
    assert Mount("/t").read(planted) == MADE, "who made that is gone"


def test_an_instance_whose_process_is_gone_is_taken_away_and_no_other(planted: Root) -> None:
    instances = planted.at(f"{USUAL}/instances")
    mine = [change.resource.name.rpartition("/")[2] for change in own_instance(planted)][-1]
    (planted.path / f"proc/{os.getpid()}").mkdir()
    for name in (mine, "rtmeter-4000001-9f40c650aabb", "rtmeter-9f40c650aabb", "4000001-of-others"):
        (instances / name).mkdir(parents=True)
    sweep(planted)
    assert sorted(one.name for one in instances.iterdir()) == sorted(
        [mine, "rtmeter-9f40c650aabb", "4000001-of-others"]
    )


@pytest.mark.skipif(shutil.which("busybox") is None, reason="needs busybox")
def test_what_is_mounted_is_taken_away_by_busybox_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which refuses a folder on which nothing is mounted, once it understands what is asked."""
    umount = tmp_path / "umount"
    umount.write_text('#!/bin/sh\nexec busybox umount "$@"\n')
    umount.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(OSError, match="can't unmount") as refused:
        Mount(str(tmp_path)).write(Root(), None)
    assert "Usage" not in str(refused.value)
