"""Results on disk (spec/results.md): cells being written, cells to be read."""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import shutil
import socket
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from rtmeter.errors import RtmeterError
from rtmeter.host.checked import crc32c_of
from rtmeter.host.durable import exchange, make_folders, sync, write_whole
from rtmeter.host.files import require_text
from rtmeter.host.identity import SHORT, machine_id
from rtmeter.host.owned import kept, own_folder
from rtmeter.host.root import Root
from rtmeter.results import counted
from rtmeter.results.record import CellRecord, RunRecord, read_cell_file, read_run_file, text_of
from rtmeter.samples.rows import Samples
from rtmeter.statistics.quantities import Columns
from rtmeter.values import slug

CELL, SAMPLES, RUN, CAMPAIGN = "cell.json", "samples.parquet", "run.json", "campaign.yaml"
STAGES, TEAM = "stages", "team.json"
"""The folder of a chain's sample logs, one for each process; in it while these are written: the cell's
config, and the names of its processes."""

CLIENT_LOG, SERVER_LOG, STDERR = "probe.rtlog", "server.rtlog", "probe.stderr"
DATA = (SAMPLES, counted.HISTOGRAM, counted.INTERVALS)
"""What holds a cell's data: one of these."""

PARTIAL = ".partial"
_PATIENCE_S = 10
"""For who has just measured the same cell, and has yet to let go of it."""

LOOP, LATE_RELEASES = ".loop", "late.parquet"
"""What a program's own loop records into: ``<start>.loop``, of which the cell ``<start>`` is made; in that
cell, its late releases with their surroundings since its start."""

STILL_RUNNING = "still_running"
"""The doubt of such a cell whose program went on when it was made."""


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turns what the file system refuses into an RtmeterError that names the path and what to do."""
    require_text(path, "results")
    try:
        yield
    except OSError as error:
        remedies = {
            errno.ENOSPC: "free space there, then measure again",
            errno.EDQUOT: "free space there, then measure again",
            errno.EACCES: "choose a folder you may write to",
            errno.EROFS: "choose a folder you may write to",
            errno.ENAMETOOLONG: "give it a shorter name",
            errno.EEXIST: "it is no folder: choose another with --out, or mount or remove what is there",
        }
        raise RtmeterError(
            f"cannot be written: {(error.strerror or str(error)).lower()}",
            field="results",
            value=str(error.filename or path),
            remedy=remedies.get(error.errno or 0, "choose another folder with --out"),
        ) from None


class NewCell:
    """A cell being written: into ``<path>.partial``, which becomes ``path`` when it is whole.

    A cell that is there already stays until then. As a context manager it leaves nothing behind unless
    it was finished. Nobody else writes it meanwhile: the folder is locked (flock(2)).
    """

    def __init__(self, path: Path, patience_s: float = 0) -> None:
        """Raises RtmeterError if the cell cannot be written, or is being written by another process, and
        still is after ``patience_s``."""
        self.path = path
        self.folder = path.with_name(path.name + PARTIAL)
        with writing(path):
            if path.is_dir() and not os.access(path, os.W_OK):  # what is to be replaced could not be removed
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            self._lock, self._made = own_folder(self.folder, patience_s)
            try:
                for file in self.folder.iterdir():
                    shutil.rmtree(file) if file.is_dir() and not file.is_symlink() else file.unlink()
            except OSError as error:
                self._release()
                raise OSError(error.errno, error.strerror, str(self.folder)) from None

    def finish(self, record: CellRecord) -> CellRecord:
        """Writes cell.json, with the checksum of the data, and gives the folder its name; the data are on the
        disk before that, and the name when this returns. A cell that was there is there until then (but for
        file systems that exchange no names). Returns what was written."""
        with writing(self.folder):
            data = next((file for name in DATA if (file := self.folder / name).is_file()), None)
            if data is not None:
                record = record.model_copy(update={"data_crc32c": crc32c_of(data)})
            (self.folder / CELL).write_text(text_of(record), encoding="utf-8")
            for file in self.folder.iterdir():
                if file.is_file() or file.is_dir():  # a pipe has no content
                    sync(file)
            sync(self.folder)
            if self.path.exists():
                with contextlib.ExitStack() as stack:  # as it has the other name, until it is gone
                    with contextlib.suppress(BlockingIOError):  # who still has it is done with it
                        stack.enter_context(kept(self.path, _PATIENCE_S))
                    self._replace()
            else:
                self.folder.rename(self.path)
                sync(self.path.parent)
        self._release()
        return record

    def _replace(self) -> None:
        replaced = exchange(self.folder, self.path)
        if not replaced:
            shutil.rmtree(self.path, ignore_errors=True)
            self.folder.rename(self.path)
        sync(self.path.parent)
        if not replaced:
            return
        try:
            shutil.rmtree(self.folder)
        except OSError:  # the new cell is there; what of the older one stays is in nobody's way
            left = tempfile.mkdtemp(prefix=f"{self.path.name}.replaced-", dir=self.path.parent)
            self.folder.rename(left)
            shutil.rmtree(left, ignore_errors=True)

    def discard(self) -> None:
        """Leaves nothing behind, not even the folders that were made for it."""
        shutil.rmtree(self.folder, ignore_errors=True)
        _remove_empty(self._made)
        self._release()

    def _release(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
        self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._lock >= 0:  # else it is finished, and another process may have the folder's name by now
            self.discard()


def _remove_empty(folders: Iterable[Path]) -> None:
    for folder in folders:
        with contextlib.suppress(OSError):  # it holds something
            folder.rmdir()


def check_free(path: Path, field: str) -> None:
    """Raises RtmeterError if a cell at the path would take the place of something.

    A cell that failed before it measured anything is nothing.
    """
    if path.name in ("", ".."):  # of ".", ".." and "/", whose names are not the cell's to take
        remedy = "name a folder that is to be made, e.g. results/first"
        raise RtmeterError("is no name of a folder", field=field, value=str(path), remedy=remedy)
    partial = path.with_name(path.name + PARTIAL)
    if partial.exists():
        remedy = f"wait for it; or {_kept_of(partial)}remove {partial}"
        message = "is being measured, or was when rtmeter was killed"
        raise RtmeterError(message, field=field, value=str(path), remedy=remedy)
    taken = path.exists() and (not path.is_dir() or any(path.iterdir()))
    if taken and is_cell(path):
        taken = read_cell(path).summary is not None
    if taken:
        remedy = "choose another folder, or remove it"
        raise RtmeterError("holds something already", field=field, value=str(path), remedy=remedy)


def _kept_of(partial: Path) -> str:
    """What is to be done before an unfinished cell is removed, lest what was measured goes with it."""
    logs = [log for log in partial.rglob("*.rtlog") if log.is_file() and log.stat().st_size > 0]
    if not logs:
        return ""
    if (partial / STAGES / TEAM).is_file():
        return f"rtmeter recover {partial}, and "
    log = partial / CLIENT_LOG
    return f"rtmeter recover {log}, and " if log in logs else f"keep the logs in {logs[0].parent}, and "


def machine_name() -> str:
    """The host's name as a folder's."""
    return slug(socket.gethostname()) or "machine"


def own_machine(out: Path) -> str:
    """The folder of this machine in ``out``: the host's name, and the first digits of this machine's id
    where what lies in that one is of another machine of the same name."""
    name, own = machine_name(), machine_id(Root())
    if own is None:
        return name
    apart = f"{name}-{own[:SHORT]}"
    ids = {found for file in (out / name).glob(f"*/*/{RUN}") if (found := _machine_of(file)) is not None}
    return apart if (out / apart).is_dir() or (ids and own not in ids) else name


def _machine_of(run_file: Path) -> str | None:
    with contextlib.suppress(RtmeterError):  # told by whoever needs that run
        return read_run_file(run_file).machine_id
    return None


def new_run_folder(out: Path, campaign: str, machine: str | None = None) -> Path:
    """``<out>/<machine>/<campaign>/<run>``, not yet there; runs are named by the time they start (UTC).
    The machine is by default this one."""
    parent = out / (machine or own_machine(out)) / slug(campaign)
    name = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    taken = (parent / name, *(parent / f"{name}-{n}" for n in range(2, 1000)))
    return next(folder for folder in taken if not folder.exists())


@contextlib.contextmanager
def own_run_folder(out: Path, campaign: str, machine: str | None = None) -> Iterator[Path]:
    """new_run_folder(), made so that no other run has it; what of it is empty at the end goes again."""
    while True:
        folder = new_run_folder(out, campaign, machine)
        made = [folder, *(parent for parent in folder.parents if not parent.exists())]
        with writing(folder):
            folder.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):  # another's, since it was looked for
                folder.mkdir()
                break
    try:
        yield folder
    finally:
        _remove_empty(made)


def latest_run(out: Path, campaign: str) -> Path | None:
    """The folder of the campaign's last run on this machine, if there is one: the one that started last by
    its clock. Raises RtmeterError for a damaged run.json, but of a run that was begun before that one."""
    own = machine_id(Root())
    ours, damaged = list[tuple[str, Path]](), list[tuple[str, RtmeterError]]()
    for file in (out / own_machine(out) / slug(campaign)).glob(f"*/{RUN}"):
        try:
            run = read_run_file(file)
        except RtmeterError as error:
            damaged.append((file.parent.name, error))
            continue
        if None in (own, run.machine_id) or run.machine_id == own:
            ours.append((run.started, file.parent))
    last = max(ours)[1] if ours else None
    for name, wrong in damaged:  # runs are named by when they start
        if last is None or name > last.name:
            raise wrong
    return last


def stamp(time: datetime) -> str:
    """A moment as cell.json and run.json have it: UTC, to the second."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def write_run(folder: Path, run: RunRecord, campaign: str | None) -> None:
    """Writes run.json, and campaign.yaml where a text is given; they are on the disk then."""
    with writing(folder):
        make_folders(folder)
        if campaign is not None:
            write_whole(folder / CAMPAIGN, campaign)
        write_whole(folder / RUN, text_of(run))


def read_run(folder: Path) -> RunRecord:
    """The run.json of a run's folder. Raises RtmeterError if it is damaged."""
    return read_run_file(folder / RUN)


def read_cell(folder: Path) -> CellRecord:
    """The cell.json of a cell's folder. Raises RtmeterError if it is damaged."""
    return read_cell_file(folder / CELL)


def is_cell(folder: Path) -> bool:
    """Whether the folder holds a cell that is whole."""
    return os.path.isfile(folder / CELL) and not folder.name.endswith(PARTIAL)  # noqa: PTH113, not for us: none


def distinct(ids: Mapping[Path, str], below: Path) -> dict[Path, str]:
    """A name for each cell's folder: its id, or, where others have that too, the folder below ``below``."""
    times = Counter(ids.values())
    return {
        folder: cell_id if times[cell_id] == 1 else str(folder.relative_to(below))
        for folder, cell_id in ids.items()
    }


def cell_folders(path: Path, tell: Callable[[RtmeterError], None] | None = None) -> list[Path]:
    """The folder of the cell at the path, or those of all cells under it: runs by name, each in its running
    order; where nothing lies, those of the repeats of that name. ``tell`` hears of a run whose run.json is
    damaged, or whose path is no UTF-8; its cells are left out then.

    Raises RtmeterError if there is none, and, without ``tell``, for such a run.
    """
    if is_cell(path):
        return [path]
    if repeats := repeats_of(path):
        return repeats
    cells = list(_cells_below(path))
    if not cells:
        raise RtmeterError(
            "holds no cell" if path.exists() else "is not there",
            field="path",
            value=str(path),
            remedy="give a folder that `rtmeter measure` or `rtmeter run` wrote",
        )
    runs: dict[str, list[str]] = {}
    for cell in cells:
        run, name = os.path.split(cell)
        runs.setdefault(run, []).append(name)
    ordered = []
    for run in sorted(runs, key=Path):
        try:
            require_text(Path(run), "path")
            listed = read_run(Path(run)).cells if Path(run, RUN).is_file() else ()
        except RtmeterError as error:
            if tell is None:
                raise
            tell(error)
            continue
        place = {name: number for number, name in enumerate(listed)}
        ordered += [(run, name) for name in sorted(runs[run], key=lambda one: (place.get(one, -1), one))]
    return [Path(run, name) for run, name in ordered]


def repeats_of(path: Path) -> list[Path]:
    """Where nothing lies at the path, the repeats ``<path>-r1``, ``<path>-r2``, …, if there are any."""
    if path.exists() or not path.parent.is_dir():
        return []
    beside = [folder for folder in path.parent.glob(f"{glob.escape(path.name)}-r*") if is_cell(folder)]
    repeats = [
        (record.repeat, folder) for folder in beside if (record := read_cell(folder)).name == path.name
    ]
    return [folder for _, folder in sorted(repeats)]


def _cells_below(path: Path) -> Iterator[str]:
    """The cells below the path; what lies in a cell, as one recovered there, is none of its own."""
    for name, folders, files in os.walk(path):
        if CELL in files and not name.endswith(PARTIAL):
            folders.clear()
            yield name


def chunks(folder: Path) -> Callable[[], Iterator[Columns]]:
    """A function that starts anew over the cell's samples: all columns, in the order of k."""
    samples = Samples(folder / SAMPLES)
    columns = sorted(samples.columns - {"k", "status", "warm_up"})
    return lambda: samples.chunks(*columns)


ReadSamples = Callable[[Path], Callable[[], Iterator[Columns]]]
"""``chunks``, or one that tells how far it is."""


def quoted(text: str) -> str:
    """The text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"
