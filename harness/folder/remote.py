"""A run folder in an object store: `s3://`, `gs://`, `az://` and wherever else fsspec reaches (extra: remote).

    ctxbench run recordings --out s3://bucket/runs/today
    ctxbench report s3://bucket/runs/today

The store has the files of a run folder under the same names, so whatever reads Parquet there reads them. A run is made
and read in a copy on this machine, `~/.cache/ctxbench/runs/`. Each part is put into the store when it is finished, its
receipts last: nothing is relied on but that an object is written whole or not at all. No other run writes there while
the lease is held, an object that its owner renews.

Every worker writes the same bytes but for the times. Of these the first ones count: they are put where none are.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path, PurePosixPath
from secrets import token_hex
from threading import Event, Thread
from time import monotonic, sleep
from typing import Any
from urllib.parse import unquote

import msgspec

from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.files import cache_folder
from ctxbench.scenarios.packed import file_systems, is_address, reached, url_of
from ctxbench.scenarios.secrets import has_secret, without_secrets

from .files import FileDigest, Receipt, file_digest, placed, read_receipt, text_digest, write_receipt
from .store import ACCOUNT, ANSWERS, TABLES, ResultPart

LEASE = ".lease-"
"""Start of the name of a lease; its number follows. A run takes over a dead lease by putting the next number."""
BEAT = 5.0
"""Seconds between two renewals of a lease."""
PATIENCE = 4
"""Renewals that a run waits for before it takes over a lease that nobody renews."""
_AT_ONCE = 32
"""Files that are fetched together."""
_ALONE = ("manifest.json", ACCOUNT)
# Copies that this process has made, and what they are copies of.
_addresses: dict[Path, str] = {}


def located(folder: Path | str) -> tuple[Path, RemoteFolder | None]:
    """Return the folder of this machine that a run is in, and what it is a copy of if a run is named by an address.

    A Path that was made of an address has lost one of its slashes, and is taken as well.
    """
    text = str(folder)
    if text.startswith("file:/"):
        return Path("/" + unquote(text.removeprefix("file:")).lstrip("/")), None
    if not is_address(text):
        return Path(folder), None
    remote = remote_folder(url_of(text))
    return remote.copy, remote


def fetched(folder: Path | str) -> Path:
    """Return the folder of this machine that a run is in; that of a run in a store is made what the store has.

    Raises RunError if the store has no run there.
    """
    here, remote = located(folder)
    if remote is not None:
        remote.pull()
        if not (here / "manifest.json").is_file():
            to_run = shlex.join(["ctxbench", "run", "--out", remote.address])
            raise RunError(f"{remote.address}: no run is here (no manifest.json): make one with `{to_run}`")
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
        self._store, root = self._ask(lambda: file_systems(self.address).core.url_to_fs(self.address))
        self._root = str(root).rstrip("/")
        self._is_lost = False
        self.tell: Callable[[str], None] = lambda _: None
        """Told why nothing happens while a lease is waited for."""

    def pull(self) -> None:
        """Make the copy what the store has. What the copy has already is not fetched again."""
        there = dict.fromkeys(self._names())  # in order, and quickly looked up: a run may have 100,000 files
        for path in list(self._copied()):
            if self._name(path) not in there:
                path.unlink()
        small = dict.fromkeys(name for name in there if name in _ALONE or name.endswith(".json"))
        self._fetch(small)
        written = self._receipts(name for name in small if name not in _ALONE)
        self._fetch(name for name in there if name not in small and not self._is_copied(name, written))

    def pull_parts(self, parts: Iterable[ResultPart]) -> None:
        """Fetch the files of some parts of the copy, as far as the store has them."""
        for part in parts:
            self._fetch([self._name(path) for path in (part.path("receipts"), part.timings_receipt)], lenient=True)
            receipts = map(read_receipt, (part.path("receipts"), part.timings_receipt))
            self._fetch([name for receipt in receipts if receipt for name in receipt.files], lenient=True)

    def push_part(self, part: ResultPart, made: bool = True) -> None:
        """Put the files of a finished part into the store; of one that was not `made` just now, if it has them not."""
        receipt = part.path("receipts")
        ours = receipt.read_bytes()
        if made := made or self._read(self._name(receipt)) != ours:
            names = list(msgspec.json.decode(ours, type=Receipt).files)
            self._remove([self._name(path) for table in TABLES if not (path := part.path(table)).is_file()])
            for name in names:
                self._push(name)
        self._push_times(part)
        if made:
            self._push(self._name(receipt))

    def push_answers(self, shard: int | None = None) -> None:
        """Put the answers and grades of a shard into the store, or all of them with what they cost."""
        pattern = "*.parquet" if shard is None else f"{shard:05d}.parquet"
        for path in sorted(path for table in ANSWERS for path in (self.copy / table).rglob(pattern)):
            receipt = path.with_suffix(".json")
            if receipt.is_file() and self._read(self._name(receipt)) != receipt.read_bytes():
                self._push(self._name(path))
                self._push(self._name(receipt))
        if shard is None:
            self._push_alone()

    def push_manifest(self) -> None:
        """Put the manifest into the store, and remove the parts there that the copy does not have."""
        here = {self._name(path) for path in self._copied()}
        self._remove([name for name in self._names() if name not in here])
        self._push_alone()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other runs out of the store. Raises RunError if one is writing there.

        A run that was killed is in the way for BEAT × PATIENCE seconds.
        """
        owner = token_hex(8)
        number = self._take(owner)
        over = Event()
        beats = Thread(target=self._renew, args=(owner, number, over), daemon=True)
        beats.start()
        try:
            yield
        finally:
            over.set()
            beats.join()
            if not self._is_lost:
                self._remove([f"{LEASE}{number}"])

    def check(self) -> None:
        """Raise RunError if another run has taken the lease, since this one could not renew it in time."""
        if self._is_lost:
            raise RunError(
                f"{self.address}: another run writes there now, since this one could not be heard of for "
                f"{BEAT * PATIENCE:.0f} seconds: what is finished is kept"
            )

    def _take(self, owner: str) -> int:
        """Put a lease, and return its number. Whoever puts a number where none is has it alone."""
        until = monotonic() + BEAT * PATIENCE
        seen: dict[int, bytes] = {}
        while True:
            leases = self._leases()
            if seen and leases.items() - seen.items():
                raise RunError(f"{self.address}: another run is writing there: wait for it, or name another --out")
            if not leases or (seen and monotonic() >= until):
                number = max(leases, default=0) + 1
                mine = f"{owner} 0".encode()
                if self._put_new(f"{LEASE}{number}", mine):
                    # In the meantime others may have taken over the dead lease, ended, and made room for the next run.
                    if self._leases().items() <= {*leases.items(), (number, mine)}:
                        self._remove(f"{LEASE}{dead}" for dead in leases)
                        return number
                    self._remove([f"{LEASE}{number}"])
                continue
            if not seen:
                seconds = BEAT * PATIENCE
                self.tell(f"{self.address}: a run was writing there: looking for {seconds:.0f} s whether it still is")
            seen = leases
            sleep(BEAT / 5)

    def _leases(self) -> dict[int, bytes]:
        """Return the leases in the store by number. All but the highest are those of dead runs."""

        def found() -> list[str]:
            self._store.invalidate_cache()
            return [str(name).rpartition("/")[2] for name in self._store.ls(self._root, detail=False)]

        try:
            names = self._ask(found)
        except FileNotFoundError:  # a store without folders
            return {}
        numbers = [name.removeprefix(LEASE) for name in names if name.startswith(LEASE)]
        leases = {int(number): self._read(LEASE + number) for number in numbers if number.isdecimal()}
        return {number: data for number, data in leases.items() if data is not None}

    def _renew(self, owner: str, number: int, over: Event) -> None:
        beat = 0
        while not over.wait(BEAT):
            beat += 1
            try:
                lease = self._read(f"{LEASE}{number}")
                taken = self._read(f"{LEASE}{number + 1}") is not None
                if taken or lease is None or not lease.startswith(owner.encode()):
                    self._is_lost = True
                    return
                self._put(f"{LEASE}{number}", f"{owner} {beat}".encode())
            except Exception:  # whatever the store raises: the next beat may get through
                continue

    def _push_times(self, part: ResultPart) -> None:
        """Put the times of a part into the store; where another worker has put its own, those are copied."""
        path, receipt = part.path("timings"), part.timings_receipt
        if not path.is_file():
            return
        ours = msgspec.json.decode(receipt.read_bytes(), type=Receipt)
        stored, data = self._read(self._name(receipt)), self._read(self._name(path))
        if stored is not None and not _is_receipt_of(stored, ours, data):
            self._remove([self._name(receipt), self._name(path)])
            data = None
        elif stored == receipt.read_bytes() and data == path.read_bytes():
            return
        if data is None and not self._put_new(self._name(path), path.read_bytes()):
            data = self._read(self._name(path))
        if data is not None and data != path.read_bytes():
            with placed(path) as draft:
                draft.write_bytes(data)
        files = {self._name(path): file_digest(path)}
        write_receipt(receipt, Receipt(ours.part, ours.run, ours.shard, files))
        self._push(self._name(receipt))

    def _copied(self) -> Iterator[Path]:
        """Yield the files of the copy that belong in the store."""
        for table in (*TABLES, *ANSWERS):
            # Drafts begin with a dot.
            yield from (path for path in (self.copy / table).rglob("[!.]*") if path.is_file())
        yield from (path for path in (self.copy / name for name in _ALONE) if path.is_file())

    def _names(self) -> list[str]:
        """Return the names of the store's files that are of a run. Nothing else there is looked at."""

        def found() -> list[str]:
            self._store.invalidate_cache()
            return [str(name) for name in self._store.find(self._root)]

        names = (name.removeprefix(self._root).lstrip("/") for name in self._ask(found))
        return sorted(name for name in names if _is_of_run(name))

    def _receipts(self, names: Iterable[str]) -> dict[str, FileDigest]:
        """Return the digests of all files, by name, as the receipts of the copy have them."""
        written: dict[str, FileDigest] = {}
        for name in names:
            receipt = read_receipt(self.copy / name)
            if receipt is not None:
                # Those of answers name their file alone.
                above = f"{PurePosixPath(name).parent}/" if name.partition("/")[0] in ANSWERS else ""
                written |= {above + file: digest for file, digest in receipt.files.items()}
        return written

    def _is_copied(self, name: str, written: dict[str, FileDigest]) -> bool:
        path = self.copy / name
        return name in written and path.is_file() and file_digest(path) == written[name]

    def _fetch(self, names: Iterable[str], lenient: bool = False) -> None:
        """Copy some files, whole or not at all; `lenient` passes over those that are not there."""
        wanted = [name for name in names if _is_of_run(name)]
        for start in range(0, len(wanted), _AT_ONCE):
            places = {self._place(name): name for name in wanted[start : start + _AT_ONCE]}
            found = self._ask(partial(self._store.cat, list(places), on_error="omit" if lenient else "raise"))
            for place, data in found.items():
                with placed(self.copy / places[str(place)]) as draft:
                    draft.write_bytes(data)

    def _name(self, path: Path) -> str:
        return path.relative_to(self.copy).as_posix()

    def _place(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _push_alone(self) -> None:
        for name in _ALONE:
            if (self.copy / name).is_file():
                self._push(name)

    def _push(self, name: str) -> None:
        self._put(name, (self.copy / name).read_bytes())

    def _put(self, name: str, data: bytes) -> None:
        self._ask(lambda: self._piped(name, data))

    def _put_new(self, name: str, data: bytes) -> bool:
        """Put an object where none is; False if there is one."""
        try:
            self._ask(lambda: self._piped(name, data, mode="create"))
        except FileExistsError:
            return False
        return True

    def _piped(self, name: str, data: bytes, **how: str) -> None:
        self._store.makedirs(self._place(name).rpartition("/")[0], exist_ok=True)  # nothing in a store without folders
        self._store.pipe_file(self._place(name), data, **how)

    def _read(self, name: str) -> bytes | None:
        try:
            data: bytes = self._ask(lambda: self._store.cat_file(self._place(name)))
        except FileNotFoundError:
            return None
        return data

    def _remove(self, names: Iterable[str]) -> None:
        for name in names:
            try:
                self._ask(partial(self._store.rm_file, self._place(name)))
            except FileNotFoundError:
                continue

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
    in_a_table = len(parts) > 1 and parts[0] in (*TABLES, *ANSWERS) and "\\" not in name
    return name in _ALONE or (in_a_table and all(part and not part.startswith(".") for part in parts))


def _is_receipt_of(stored: bytes, ours: Receipt, data: bytes | None) -> bool:
    """Return whether stored bytes are the receipt of a file of the same part with this data."""
    try:
        receipt = msgspec.json.decode(stored, type=Receipt)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    same = (receipt.part, receipt.run, receipt.shard) == (ours.part, ours.run, ours.shard)
    known = [FileDigest(len(data), text_digest(data))] if data is not None else []
    return receipt.signed() == receipt and same and list(receipt.files.values()) == known
