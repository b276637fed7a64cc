"""A run folder in an object store: `s3://`, `gs://`, `az://` and wherever else fsspec reaches (extra: remote).

    ctxbench run recordings --out s3://bucket/runs/today
    ctxbench report s3://bucket/runs/today

The store has the files of a run folder under the same names, so whatever reads Parquet there reads them. A run is made
and read in a copy on this machine, `~/.cache/ctxbench/runs/`. Each part is put into the store when it is finished, the
file that says so last: nothing is relied on but that an object is written whole or not at all. No other run writes
there while the lease is held, an object that its owner renews.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path, PurePosixPath
from secrets import token_hex
from threading import Event, Thread
from time import monotonic, sleep
from typing import Any
from urllib.parse import unquote

from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.files import cache_folder
from ctxbench.scenarios.packed import file_systems, is_address, reached, url_of
from ctxbench.scenarios.secrets import has_secret, without_secrets

from .files import file_digests, placed
from .store import ACCOUNT, ANSWERS, BILLS, TABLES, ResultPart, read_manifest

LEASE = ".lease"  # name of the object that a run renews while it writes
BEAT = 5.0  # seconds between two renewals of a lease
PATIENCE = 4  # renewals that a run waits for before it takes over a lease that nobody renews
_AT_ONCE = 32  # files that are fetched together
_ALONE = ("manifest.json", ACCOUNT)
# Copies that this process has made, and what they are copies of.
_addresses: dict[Path, str] = {}


def located(folder: Path | str) -> tuple[Path, RemoteFolder | None]:
    """Return the local folder of a run, and the remote folder it is a copy of. Takes a Path made of an address."""
    text = str(folder)
    if text.startswith("file:/"):
        return Path("/" + unquote(text.removeprefix("file:")).lstrip("/")), None
    if not is_address(text):
        return Path(folder), None
    remote = remote_folder(url_of(text))
    return remote.copy, remote


def fetched(folder: Path | str) -> Path:
    """Return the folder of a run here, made what the store has. Raises RunError if the store has no run there."""
    here, remote = located(folder)
    if remote is not None:
        remote.pull()
        if not (here / "manifest.json").is_file():
            raise RunError(f"{remote.address}: no run is here (no manifest.json): `ctxbench run` makes one")
    return here


def name_of(folder: Path) -> str:
    """Return how the user names a run: by its address if the folder is a copy of one in a store, else by its path."""
    return _addresses.get(folder) or str(folder)


@cache
def remote_folder(address: str, copy: str = "") -> RemoteFolder:
    """Return the folder at an address, with which a process connects once. `copy` empty = one in the user's cache."""
    return RemoteFolder(address, Path(copy) if copy else None)


class RemoteFolder:
    """A run folder at an address, and its copy on this machine. Its methods raise UserError if it cannot be reached."""

    def __init__(self, address: str, copy: Path | None = None) -> None:
        """Connect with the store. Raises UserError for an address that is none, or has a secret in it."""
        self.address = url_of(address).rstrip("/")
        if has_secret(self.address):
            raise RunError(
                f"{without_secrets(self.address)}: no password, token or signature may be in the name of a run: give "
                "it to fsspec by the environment or its settings"
            )
        digest, name = hashlib.sha256(self.address.encode()).hexdigest()[:16], PurePosixPath(self.address).name
        self.copy = copy or cache_folder() / "runs" / digest / name
        _addresses[self.copy] = self.address
        store, root = self._ask(lambda: file_systems(self.address).core.url_to_fs(self.address))
        # A store whose names are those of the files in the folder.
        self._store = file_systems(self.address).filesystem("dir", path=str(root).rstrip("/"), fs=store)
        self._is_lost = False
        self.tell: Callable[[str], None] = lambda _: None
        """Told why nothing happens while a lease is waited for."""

    def pull(self) -> None:
        """Make the copy what the store has. Files that the copy has as the manifest says are not fetched again."""
        there = dict.fromkeys(self._names())  # in order, and quickly looked up: a run may have 100,000 files
        for name, path in self._copied().items():
            if name not in there:
                path.unlink()
        self._fetch(name for name in _ALONE if name in there)
        written: Mapping[str, str] = {}
        with suppress(RunError):  # no run is there yet, or one of another format, which will be overwritten
            written = read_manifest(self.copy).files
        copied = file_digests(self.copy, there.keys() & written.keys())
        kept = {name for name, digest in copied.items() if digest == written[name]}
        self._fetch(name for name in there if name not in _ALONE and name not in kept)

    def pull_parts(self, parts: Iterable[ResultPart]) -> None:
        """Fetch the files of some parts of the copy, as far as the store has them."""
        self._fetch((self._name(part.path(table)) for part in parts for table in TABLES), lenient=True)

    def push_part(self, part: ResultPart) -> None:
        """Put the files of a part that was just made into the store."""
        *others, last = part.files
        # An older last one would say that the part is finished.
        self._remove(map(self._name, [last, *(path for path in map(part.path, TABLES) if not path.is_file())]))
        self._push((*others, last))

    def push_answers(self, shard: int | None = None) -> None:
        """Put the answers and grades of a shard into the store, or all of them with what they cost."""
        pattern = "*.parquet" if shard is None else f"{shard:05d}.parquet"
        paths = sorted(path for table in ANSWERS for path in (self.copy / table).rglob(pattern))
        self._push((*paths, *(self._of_run() if shard is None else ())))

    def push_bills(self) -> None:
        """Put the bills that are in the copy into the store."""
        self._push(sorted((self.copy / BILLS).glob("[!.]*")))

    def push_manifest(self) -> None:
        """Put the manifest into the store, and remove the parts there that the copy does not have."""
        here = self._copied()
        self._remove([name for name in self._names() if name not in here])
        self._push(self._of_run())

    def _of_run(self) -> list[Path]:
        return [path for name in _ALONE if (path := self.copy / name).is_file()]

    def _name(self, path: Path) -> str:
        return path.relative_to(self.copy).as_posix()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other runs out. Raises RunError if one writes there; one that was killed is waited for a while."""
        owner, over = token_hex(8).encode(), Event()
        self._take(owner)
        beats = Thread(target=self._renew, args=(owner, over), daemon=True)
        beats.start()
        try:
            yield
        finally:
            over.set()
            beats.join()
            if not self._is_lost:
                self._remove([LEASE])

    def check(self) -> None:
        """Raise RunError if another run has taken the lease, since this one could not renew it in time."""
        if self._is_lost:
            raise RunError(
                f"{self.address}: another run writes there now, since this one could not be heard of for "
                f"{BEAT * PATIENCE:.0f} seconds: what is finished is kept"
            )

    def _take(self, owner: bytes) -> None:
        """Put the lease where none is, or in place of one that nobody has renewed for BEAT × PATIENCE seconds."""
        seconds = BEAT * PATIENCE
        while True:
            with suppress(FileExistsError):
                self._put(LEASE, owner, mode="create")
                return
            seen, until = self._read(LEASE), monotonic() + seconds
            self.tell(f"{self.address}: a run was writing there: looking for {seconds:.0f} s whether it still is")
            while (now := self._read(LEASE)) == seen and monotonic() < until:
                sleep(BEAT / 5)
            if now is None:
                continue
            if now == seen:
                self._put(LEASE, owner)
                sleep(BEAT / 5)  # others may have found it dead at the same moment: the last one to put has it
                now = self._read(LEASE)
            if now != owner:
                raise RunError(f"{self.address}: another run is writing there: wait for it, or name another --out")
            return

    def _renew(self, owner: bytes, over: Event) -> None:
        beat = 0
        while not over.wait(BEAT):
            beat += 1
            with suppress(Exception):  # whatever the store raises: the next beat may get through
                if not (self._read(LEASE) or b"").startswith(owner):
                    self._is_lost = True
                    return
                self._put(LEASE, b"%b %d" % (owner, beat))

    def _copied(self) -> dict[str, Path]:
        """Return the files of the copy that belong in the store, by their names there."""
        # Drafts begin with a dot.
        paths = [path for table in (*TABLES, *ANSWERS) for path in (self.copy / table).rglob("[!.]*")]
        return {self._name(path): path for path in [*paths, *self._of_run()] if path.is_file()}

    def _names(self) -> list[str]:
        """Return the names of the store's files that are of a run. Nothing else there is looked at."""
        self._store.invalidate_cache()
        return sorted(filter(_is_of_run, self._ask(lambda: self._store.find(""))))

    def _fetch(self, names: Iterable[str], lenient: bool = False) -> None:
        """Copy some files, whole or not at all; `lenient` passes over those that are not there."""
        wanted = list(filter(_is_of_run, names))
        for start in range(0, len(wanted), _AT_ONCE):
            some = wanted[start : start + _AT_ONCE]
            found = self._ask(partial(self._store.cat, some, on_error="omit" if lenient else "raise"))
            for name, data in found.items():
                with placed(self.copy / name) as draft:
                    draft.write_bytes(data)

    def _push(self, paths: Iterable[Path]) -> None:
        for path in paths:
            self._put(self._name(path), path.read_bytes())

    def _put(self, name: str, data: bytes, **how: str) -> None:
        """Put an object. Raises FileExistsError with `mode="create"` if there is one."""

        def put() -> None:
            self._store.makedirs(name.rpartition("/")[0], exist_ok=True)  # nothing in a store without folders
            self._store.pipe_file(name, data, **how)

        self._ask(put)

    def _read(self, name: str) -> bytes | None:
        try:
            data: bytes = self._ask(lambda: self._store.cat_file(name))
        except FileNotFoundError:
            return None
        return data

    def _remove(self, names: Iterable[str]) -> None:
        for name in names:
            with suppress(FileNotFoundError):
                self._ask(partial(self._store.rm_file, name))

    def _ask(self, ask: Callable[[], Any]) -> Any:
        """Return what the store answers. Raises FileNotFoundError and FileExistsError; UserError for anything else."""

        def asked() -> Any:
            try:
                return ask()
            except (FileNotFoundError, FileExistsError) as error:
                return error

        answer = reached(self.address, asked)
        if isinstance(answer, OSError):
            raise answer
        return answer


def _is_of_run(name: str) -> bool:
    """Return whether a name is that of a file of a run, and leads nowhere else."""
    parts = name.split("/")
    in_a_table = len(parts) > 1 and parts[0] in (*TABLES, *ANSWERS, BILLS) and "\\" not in name
    return name in _ALONE or (in_a_table and all(part and not part.startswith(".") for part in parts))
