"""Compressed files, archives and remote files: they hold what they would hold unpacked."""

import bz2
import gzip
import io
import json
import lzma
import sys
import tarfile
import zipfile
from collections.abc import Callable
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
import zstandard
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from ctxbench.harness.engine.plan import RunInputs
from ctxbench.scenarios import packed
from ctxbench.scenarios.errors import Place
from ctxbench.scenarios.model import Conversation, check
from ctxbench.scenarios.packed import size_of
from ctxbench.scenarios.read import find, read
from ctxbench.scenarios.source import Problems
from tests.examples import examples
from tests.scenarios.readers.samples import SAMPLES
from tests.scenarios.readers.test_fuzz import contents


def chat(name: str) -> bytes:
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]
    return json.dumps({"id": name, "messages": messages}).encode() + b"\n"


def load(*paths: Path) -> tuple[list[Conversation], Problems]:
    problems = Problems()
    return list(read(find(paths, problems), problems)), problems


def archive(path: Path, **members: bytes) -> Path:
    """Write an archive of the kind that its suffix names."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            for name, data in members.items():
                file.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)  # without the time: the same bytes
        return path
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as tar_file:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar_file.addfile(info, io.BytesIO(data))
    packing = TARS[path.name.removeprefix(path.name.split(".")[0])]
    path.write_bytes(PACKERS[packing](tar.getvalue()) if packing else tar.getvalue())
    return path


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": lambda data: gzip.compress(data, mtime=0),
    ".zst": zstandard.ZstdCompressor().compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".XZ": lzma.compress,
}
TARS = {".tar": "", ".tar.gz": ".gz", ".TGZ": ".gz", ".tar.zst": ".zst", ".tar.xz": ".xz", ".tar.bz2": ".bz2"}
ARCHIVES = (".zip", *TARS)


@pytest.mark.parametrize("suffix", PACKERS)
def test_compressed_files_are_read(suffix: str, tmp_path: Path) -> None:
    """Lines and arrays come out whole, alone or in a folder; errors and sources name the file with its suffix."""
    path = tmp_path / f"chats.jsonl{suffix}"
    path.write_bytes(PACKERS[suffix](chat("a") + b"{\n" + chat("b")))
    for named in (path, tmp_path):
        found, problems = load(named)
        assert [each.id for each in found] == ["a", "b"]
        assert [each.source for each in found] == [f"{path}:1", f"{path}:3"]
        assert [str(error.place) for error in problems.errors] == [f"{path}:2"]
    path.write_bytes(PACKERS[suffix](b"[\n" + chat("a") + b"," + chat("b") + b"]"))
    found, problems = load(path)
    assert ([each.id for each in found], problems.errors) == (["a", "b"], [])


@pytest.mark.parametrize("name", SAMPLES)
def test_every_format_may_be_packed(name: str, tmp_path: Path) -> None:
    """An archive, whose members may be compressed, holds the same conversations as its files would."""
    sample = SAMPLES[name]
    plain = tmp_path / "plain"
    plain.mkdir()
    sample.write(plain, sample.text(sample.records(2)))
    expected, _ = load(plain)
    files = {path.relative_to(plain).as_posix(): path.read_bytes() for path in plain.rglob("*") if path.is_file()}
    found, problems = load(archive(tmp_path / "plain.zip", **files))
    assert not problems.errors
    assert contents(found) == contents(expected)
    compressed = {f"inner/{path}.gz": gzip.compress(data) for path, data in files.items()}
    for kind in (".zip", ".tar.zst"):
        found, problems = load(archive(tmp_path / f"packed{kind}", **compressed))
        assert not problems.errors
        assert contents(found) == contents(expected)


@pytest.mark.parametrize("kind", ARCHIVES)
def test_members_are_named_in_errors_and_sources(kind: str, tmp_path: Path) -> None:
    """Paths lead through the archive; what is hidden or an archive of its own is passed over, and said."""
    members = {"./day/a.jsonl": chat("a") + b"{", "__MACOSX/day/._a.jsonl": b"x", "notes.txt": b"hello"}
    path = archive(tmp_path / f"logs{kind}", **members, **{"in.zip": b"PK", "in.tar.gz": b"\x1f\x8b"})
    for named in (path, tmp_path):
        [found], problems = load(named)
        assert found.source == f"{path}/day/a.jsonl:1"
        assert [str(error.place) for error in problems.errors] == [f"{path}/day/a.jsonl:2"]
        inner = [f"{path}/in.{one}: an archive within an archive" for one in ("zip", "tar.gz")]
        assert sorted(problems.ignored) == sorted([*inner, f"{path}: 1 hidden", f"{path}/notes.txt"])


def test_what_a_tar_holds_beside_files_is_passed_over(tmp_path: Path) -> None:
    """Links, devices and sparse files are counted in what is ignored; folders are nothing."""
    (tmp_path / "secret.jsonl").write_bytes(chat("secret"))
    path = tmp_path / "logs.tar"
    kinds = {"up": tarfile.SYMTYPE, "same": tarfile.LNKTYPE, "pipe": tarfile.FIFOTYPE, "null": tarfile.CHRTYPE}
    with tarfile.open(path, "w") as tar:
        for name, kind in {**kinds, "day": tarfile.DIRTYPE}.items():
            info = tarfile.TarInfo(f"{name}.jsonl")
            info.type, info.linkname = kind, str(tmp_path / "secret.jsonl")
            tar.addfile(info)
        info = tarfile.TarInfo("a.jsonl")
        info.size = len(chat("a"))
        tar.addfile(info, io.BytesIO(chat("a")))
    found, problems = load(path)
    assert [conversation.id for conversation in found] == ["a"]
    assert sorted(problems.ignored) == [f"{path}: links: 2", f"{path}: sparse files or devices: 2"]
    assert not problems.errors


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("logs.zip", lambda data: data[:60] + b"\0" * 20 + data[80:]),
        ("logs.zip", lambda data: data[:-30]),
        ("logs.tar", lambda data: data[: 3 * 512 + 40]),
        ("logs.tar", lambda data: data[:1024] + b"\xff" * 20 + data[1044:]),  # the header of the second member
        ("logs.tar.gz", lambda data: data[:-12]),
        ("logs.TGZ", lambda _: gzip.compress(chat("a") * 20)),
        ("a.jsonl.gz", lambda data: data[:-12]),
        ("a.jsonl.zst", lambda data: data[:4] + b"\xff" * 20),
    ],
)
def test_damage_is_one_problem(name: str, damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """It names the file or the member, and the files beside it are read."""
    path = tmp_path / name
    if name.startswith("logs"):
        archive(path, **{"a.jsonl": chat("a"), "b.jsonl": chat("b")})
    else:
        path.write_bytes(PACKERS[path.suffix](b"".join(map(chat, "abcdefghi"))))
    path.write_bytes(damage(path.read_bytes()))
    (tmp_path / "z.jsonl").write_bytes(chat("z"))
    found, problems = load(tmp_path)
    assert "z" in [each.id for each in found]
    [error] = problems.errors
    assert error.what.startswith("cannot be unpacked: ")
    assert Path(error.place.file).relative_to(tmp_path).parts[0] == name


@examples(150, ignored=HealthCheck)
@given(data=st.data())
def test_any_byte_may_be_damaged(data: st.DataObject) -> None:
    """Whatever is cut off, flipped or inserted, sound conversations come out, or problems, and nothing else."""
    with TemporaryDirectory() as folder:
        kind = data.draw(st.sampled_from([*ARCHIVES, *(f".jsonl{suffix}" for suffix in PACKERS)]))
        path = Path(folder, f"chats{kind}")
        lines = b"".join(map(chat, "abc"))
        if kind in ARCHIVES:
            archive(path, **{"a.jsonl": lines, "b.jsonl.gz": gzip.compress(lines, mtime=0)})
        else:
            path.write_bytes(PACKERS[path.suffix](lines))
        packed_bytes = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 4))):
            at = data.draw(st.integers(0, len(packed_bytes)))
            packed_bytes[at : at + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=9))
        path.write_bytes(packed_bytes)
        found, problems = load(path)
        for conversation in found:
            check(conversation, Place(str(path)))
        for error in problems.errors:
            assert error.what
            assert error.place.file.startswith(str(path))
        assert found or problems.errors or problems.ignored


@pytest.mark.parametrize("kind", ARCHIVES)
def test_no_name_leads_out_of_an_archive(kind: str, tmp_path: Path) -> None:
    """A name with `..` is passed over, and an absolute one stands in the archive: files elsewhere are not read."""
    secret = tmp_path / "secret.jsonl"
    secret.write_bytes(chat("secret"))
    members = {"../secret.jsonl": chat("a"), str(secret): chat("b"), "c.jsonl": chat("c")}
    path = archive(tmp_path / f"logs{kind}", **members)
    found, problems = load(path)
    assert sorted(conversation.id for conversation in found) == ["b", "c"]
    assert problems.ignored == [f"{path}: names that lead out of the archive: 1"]
    assert not packed.is_file(path / "none.jsonl")
    assert packed.size_of(path / "c.jsonl") == len(chat("c"))


def test_the_size_of_packed_inputs_is_known(tmp_path: Path) -> None:
    """Progress counts bytes as they are read: those of members, and an estimate for compressed files."""
    archive(tmp_path / "logs.zip", **{"a.jsonl": chat("a")})
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(chat("b")))
    batches = RunInputs((str(tmp_path),)).open(Problems())
    assert (
        sum(size_of(path) for batch in batches for path in batch.files)
        == len(chat("a")) + 4 * (tmp_path / "b.jsonl.gz").stat().st_size
    )


def remote(**files: bytes) -> str:
    """An address of fsspec's memory with these files."""
    fsspec = pytest.importorskip("fsspec")
    system = fsspec.filesystem("memory")
    system.rm("/", recursive=True) if system.ls("/") else None
    for name, data in files.items():
        system.pipe(f"/logs/{name}", data)
    return "memory://logs"


def test_remote_files_are_read() -> None:
    """An address is a file, or a folder of them, compressed or not; errors and sources have the address."""
    address = remote(**{"a.jsonl": chat("a") + b"{", "b.jsonl.gz": gzip.compress(chat("b"))})
    problems = Problems()
    found = list(RunInputs((address,)).read(problems))
    assert [each.id for each in found] == ["a", "b"]
    assert [each.source for each in found] == ["memory://logs/a.jsonl:1", "memory://logs/b.jsonl.gz:1"]
    assert [str(error.place) for error in problems.errors] == ["memory://logs/a.jsonl:2"]
    problems = Problems()
    [one] = RunInputs((f"{address}/b.jsonl.gz",)).read(problems)
    assert (one.id, problems.errors) == ("b", [])


class Quiet(SimpleHTTPRequestHandler):
    """Serves files without a word."""

    def log_message(self, format: str, *args: Any) -> None:
        pass


def test_web_addresses_are_files(tmp_path: Path) -> None:
    """A file of a web server is read, compressed or not; one that is not there is named with its address."""
    pytest.importorskip("fsspec")
    pytest.importorskip("aiohttp")
    (tmp_path / "a.jsonl").write_bytes(chat("a"))
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(chat("b")))
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        names = tuple(f"{address}/{name}" for name in ("a.jsonl", "b.jsonl.gz", "none.jsonl"))
        problems = Problems()
        found = list(RunInputs(names).read(problems))
        server.shutdown()
    assert [each.source for each in found] == [f"{address}/a.jsonl:1", f"{address}/b.jsonl.gz:1"]
    [error] = problems.errors
    assert str(error).startswith(f"{address}/none.jsonl: cannot be reached: ")


class Hub(Quiet):
    """Answers as the Hugging Face hub does for one data set, `org/data`, with the files of its folder."""

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        files = {file.relative_to(self.directory).as_posix(): file for file in Path(self.directory).rglob("*.*")}
        name = path.partition("/resolve/main/")[2]
        if path.startswith("/api/datasets/org/data/tree/"):
            folders = {parent for file in files for parent in Path(file).parents if parent.name}
            rows = [{"type": "directory", "oid": "1" * 40, "size": 0, "path": str(folder)} for folder in folders]
            rows += [
                {"type": "file", "oid": "1" * 40, "size": file.stat().st_size, "path": name}
                for name, file in files.items()
            ]
            self.answer(json.dumps(rows).encode())
        elif path == "/api/datasets/org/data":
            self.answer(json.dumps({"_id": "1", "id": "org/data", "sha": "0" * 40, "siblings": []}).encode())
        elif name in files:
            self.answer(files[name].read_bytes(), ETag='"e"', **{"X-Repo-Commit": "0" * 40})
        else:
            self.send_error(404)

    do_HEAD = do_GET

    def answer(self, data: bytes, **headers: str) -> None:
        self.send_response(200)
        for key, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


def test_files_of_the_hub_are_read_in_any_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file, a folder, a pattern or a whole repository, by the hub's own file system; its server is a stand-in."""
    pytest.importorskip("huggingface_hub")
    config = pytest.importorskip("fsspec.config").conf
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.jsonl").write_bytes(chat("a"))
    (tmp_path / "logs" / "b.jsonl.gz").write_bytes(gzip.compress(chat("b")))
    (tmp_path / "rollout.jsonl").write_text("".join(json.dumps(line) + "\n" for line in SAMPLES["codex"].make("c")))
    (tmp_path / "README.md").write_text("# Logs")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Hub, directory=str(tmp_path))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setitem(config, "hf", {"endpoint": f"http://127.0.0.1:{server.server_port}"})
        found = {}
        for name in ("logs/a.jsonl", "logs", "logs/*.gz", "", "none.jsonl"):
            problems = Problems()
            read = RunInputs((f"hf://org/data/{name}",)).read(problems)
            found[name] = [one.source for one in read], [str(error) for error in problems.errors], problems.ignored
        server.shutdown()
    top = "hf://datasets/org/data"
    logs = [f"{top}/logs/a.jsonl:1", f"{top}/logs/b.jsonl.gz:1"]
    assert found["logs/a.jsonl"] == (["hf://org/data/logs/a.jsonl:1"], [], [])
    assert found["logs"] == (logs, [], [])
    assert found["logs/*.gz"] == (logs[1:], [], [])
    sources, errors, ignored = found[""]
    assert sources == [*logs, f"{top}/rollout.jsonl"]
    assert (errors, len(ignored)) == ([], 1)
    [error] = found["none.jsonl"][1]
    assert error.startswith("hf://org/data/none.jsonl: cannot be reached: ")


def test_what_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """An address without its library names the extra, and one without a file says why."""

    def problem(address: str) -> str:
        problems = Problems()
        assert not list(RunInputs((address,)).read(problems))
        [error] = problems.errors
        return str(error)

    remote(**{"a.jsonl": chat("a")})
    assert problem("memory://logs/none.jsonl").startswith("memory://logs/none.jsonl: cannot be reached: ")
    assert problem("nowhere://logs").startswith("nowhere://logs: cannot be reached: Protocol not known: nowhere")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    expected = "s3://bucket/a.jsonl: fsspec is not installed (pip install 'ctxbench[remote]')"
    assert problem("s3://bucket/a.jsonl") == expected


def test_bombs_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What unpacks to more than a thousand times its size is an error, before it fills memory or disk."""
    monkeypatch.setattr(packed, "FREE", 1 << 20)
    monkeypatch.setattr(packed, "RATIO", 10)
    bomb = b"[" + b" " * (8 << 20) + b"]"
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(bomb))
    archives = [archive(tmp_path / f"bomb{kind}", **{"a.json": bomb}) for kind in (".zip", ".tar.gz", ".tar.xz")]
    for packed_file in (path, *archives):
        found, problems = load(packed_file)
        assert not found
        assert [str(error) for error in problems.errors] == [
            f"{packed_file}: unpacks to over 1 MiB, 10 times its size (leave it out, or unpack it yourself)"
        ]


def test_lists_of_members_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive that says a name is gigabytes long, that lists too much, or has too many members, is an error."""
    name = tarfile.TarInfo("././@LongLink")
    name.type, name.size = tarfile.GNUTYPE_LONGNAME, 3 << 30
    with (tmp_path / "name.tar").open("wb") as file:
        file.write(name.tobuf(tarfile.GNU_FORMAT))
        file.truncate(3 << 30)
    for kind in (".zip", ".tar.gz"):
        archive(tmp_path / f"many{kind}", **dict.fromkeys(map(str, range(30)), b""))
    (tmp_path / "good.jsonl").write_bytes(chat("a"))
    lists = "its list of files has over"
    for listed, members, path, what in (
        (32 << 20, 100, "name.tar", f"{lists} 32 MiB"),
        (1000, 100, "many.zip", f"{lists} 0 MiB"),
        (32 << 20, 20, "many.zip", "it has over 20 files"),
        (32 << 20, 20, "many.tar.gz", "it has over 20 files"),
    ):
        monkeypatch.setattr(packed, "LISTED", listed)
        monkeypatch.setattr(packed, "MEMBERS", members)
        packed._opened_archive.cache_clear()
        found, problems = load(tmp_path / path, tmp_path / "good.jsonl")
        assert (len(found), [error.what for error in problems.errors]) == (1, [f"cannot be unpacked: {what}"])
