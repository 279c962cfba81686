"""Two names that take each other's place: where the file system cannot, and where it may not."""

from __future__ import annotations

import ctypes
import errno
from pathlib import Path
from types import SimpleNamespace

import pytest

from rtmeter.host.durable import exchange


def test_two_folders_have_each_others_name(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name / f"of-{name}").mkdir(parents=True)
    if exchange(tmp_path / "one", tmp_path / "other"):
        assert (tmp_path / "one" / "of-other").is_dir() and (tmp_path / "other" / "of-one").is_dir()
    with pytest.raises(FileNotFoundError):
        exchange(tmp_path / "one", tmp_path / "none")


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EACCES])
def test_a_file_system_that_cannot_is_no_error_and_one_that_refuses_is(
    monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    refusing = SimpleNamespace(renameat2=lambda *_: -1)
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **more: refusing)
    monkeypatch.setattr(ctypes, "get_errno", lambda: number)
    if number != errno.EACCES:
        assert not exchange(Path("one"), Path("other"))
        return
    with pytest.raises(PermissionError) as caught:
        exchange(Path("one"), Path("other"))
    assert caught.value.filename == "one"
