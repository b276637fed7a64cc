"""Folders of recordings: what else stands in them is named, with the reason, and nothing is left out in silence."""

import gzip
import json
import os
from pathlib import Path

import pytest

from ctxbench.scenarios.read import find, read
from ctxbench.scenarios.source import Problems
from tests.scenarios.test_bad_input import CHAT, load, written


def ignored(folder: Path) -> list[str]:
    """What is ignored in a folder that has no recordings and no problems."""
    problems = Problems()
    assert not find([folder], problems)
    assert not problems.errors
    return problems.ignored


def test_a_pipe_is_no_recording(tmp_path: Path) -> None:
    """What is neither file nor folder is said to be so, alone or in a folder, and not waited for."""
    os.mkfifo(tmp_path / "pipe")
    _, [problem] = load(tmp_path / "pipe")
    assert "neither a file nor a folder" in problem.what
    assert ignored(tmp_path) == [f"{tmp_path}/pipe: neither a file nor a folder"]


def test_hidden_files_are_counted(tmp_path: Path) -> None:
    """Hidden files and folders, at any depth, are left out and counted; what is in a hidden folder is not."""
    (tmp_path / "inner").mkdir()
    (tmp_path / ".git").mkdir()
    for name in (".one.jsonl", "inner/.two.jsonl", ".git/three.jsonl", ".git/four.jsonl"):
        written(tmp_path / name, CHAT % b"a")
    assert ignored(tmp_path) == [f"{tmp_path}: 3 hidden"]
    assert load(tmp_path / ".one.jsonl") == (["a"], [])


@pytest.mark.parametrize("end", ["7z", "zst", "tar", "XZ"])
@pytest.mark.parametrize("form", [None, "openai_chat"])
def test_compressed_files(tmp_path: Path, end: str, form: str | None) -> None:
    """A compressed file that cannot be unpacked says so, in a folder or named, whatever it is read as."""
    packed = tmp_path / f"chats.jsonl.{end}"
    packed.write_bytes(gzip.compress(CHAT % b"a", mtime=0))
    if form is None:
        assert ignored(tmp_path) == [f"{packed}: compressed: unpack it first"]
    ids, [problem] = load(packed, form=form)
    assert (ids, str(problem)) == ([], f"{packed}: compressed: unpack it first")


def test_links(tmp_path: Path) -> None:
    """Links that go in circles or out of the folder are named and not followed; one to a file inside adds nothing."""
    folder = tmp_path / "folder"
    folder.mkdir()
    written(tmp_path / "outside.jsonl", CHAT % b"outside")
    written(folder / "inside.jsonl", CHAT % b"inside")
    (folder / "circle").symlink_to(folder / "circle")
    (folder / "up").symlink_to(tmp_path)
    (folder / "out.jsonl").symlink_to(tmp_path / "outside.jsonl")
    (folder / "gone.jsonl").symlink_to(tmp_path / "gone.jsonl")
    (folder / "same.jsonl").symlink_to(folder / "inside.jsonl")
    (folder / "inner").mkdir()
    (folder / "back").symlink_to(folder / "inner")
    problems = Problems()
    assert [each.id for each in read(find([folder], problems), problems)] == ["inside"]
    assert problems.errors == []
    assert problems.notes == [f"{folder}: 1 of 2 files named more than once, read once"]
    assert problems.ignored == [
        f"{folder}/back: a link to a folder",
        f"{folder}/circle: a link that leads nowhere",
        f"{folder}/gone.jsonl: a link that leads nowhere",
        f"{folder}/out.jsonl: a link that leads out of the folder",
        f"{folder}/up: a link that leads out of the folder",
    ]
    _, [problem] = load(folder / "circle")
    assert "no such file" in problem.what


def test_a_folder_without_recordings(tmp_path: Path) -> None:
    """Files of a folder that are no recordings are named as ignored; the same file named alone is a problem."""
    for name in ("README.md", "table.csv", "empty.json"):
        (tmp_path / name).write_text("" if name == "empty.json" else "a, b")
    problems = Problems()
    assert find([tmp_path], problems) == []
    assert (problems.errors, len(problems.ignored)) == ([], 3)
    _, [problem] = load(tmp_path / "table.csv")
    assert problem.what == "no known format fits"
    assert problem.remedy == "`ctxbench list formats` names what is read; --format chooses one of them"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", ": the file is empty"),
        (b" \n", ": the file is empty"),
        (b"[]", ": no conversation is in it"),
        (b"{}\n{}\n", ": no conversation is in it"),
        (b'{"messages": "none"}', ""),
        (b'{"names": []}', ""),
        (b"\x00\x01[]", ": not JSON: invalid character (byte 0)"),
    ],
)
def test_a_file_that_holds_nothing(tmp_path: Path, content: bytes, why: str) -> None:
    """A file that may have been meant as a recording says in a folder, too, why it is none."""
    path = written(tmp_path / "a.json", content)
    assert ignored(tmp_path) == [f"{path}{why}"]
    _, [problem] = load(path)
    assert problem.what.partition(";")[0] == (why.removeprefix(": ") or "no known format fits")


def test_a_log_that_is_no_recording(tmp_path: Path) -> None:
    """Lines whose keys make up a format only together are one problem, which names what is there."""
    path = written(tmp_path / "log.jsonl", b'{"type": "in", "role": "user"}\n{"type": "out", "content": "x"}\n')
    _, [problem] = load(path)
    assert problem.what == "no known format fits; its keys are .content, .role, .type"


def test_a_file_that_is_named_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By whatever name, alone or below folders, a file is read once, and a note says so; with its folder if that is
    named, since the files of a folder may be one recording."""
    monkeypatch.chdir(tmp_path)
    inner = tmp_path / "logs" / "inner"
    inner.mkdir(parents=True)
    one, two = written(tmp_path / "logs" / "1.jsonl", CHAT % b"1"), written(inner / "2.jsonl", CHAT % b"2")
    again = tmp_path / "again.jsonl"
    again.hardlink_to(one)
    for paths, ids, notes in [
        ([one, one], ["1"], [f"{one}: a file"]),
        ([Path("logs/1.jsonl"), two, again], ["1", "2"], [f"{again}: a file"]),
        ([one, tmp_path / "logs"], ["1", "2"], [f"{one}: a file"]),
        ([inner, Path("logs"), Path("logs")], ["2", "1"], ["logs: 1 of 2 files", "logs: 2 of 2 files"]),
        ([one, inner], ["1", "2"], []),
    ]:
        problems = Problems()
        assert [each.id for each in read(find(paths, problems), problems)] == ids
        assert problems.notes == [f"{note} named more than once, read once" for note in notes]


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_an_unreadable_folder(tmp_path: Path) -> None:
    """A folder that is shut is a problem, not an empty one."""
    written(tmp_path / "a.jsonl", CHAT % b"a")
    shut = tmp_path / "shut"
    shut.mkdir(mode=0)
    try:
        ids, [problem] = load(tmp_path)
    finally:
        shut.chmod(0o700)
    assert ids == ["a"]
    assert str(problem) == f"{shut}: cannot be read: Permission denied (check that it may be read)"


def test_a_damaged_file_does_not_part_a_folder(tmp_path: Path) -> None:
    """Logs of one folder stay one recording when a file between them, or a folder, passes for something else."""
    said = [{"role": "user", "content": "1"}, {"role": "assistant", "content": "2"}, {"role": "user", "content": "3"}]
    choice = {"message": {"role": "assistant", "content": "2"}}
    for at, asked in ((1, said[:1]), (3, said)):
        log = {"messages": asked, "response": {"choices": [choice]}, "timestamp": at}
        (tmp_path / f"{at}.json").write_text(json.dumps(log))
    (tmp_path / "2.json").write_text((tmp_path / "1.json").read_text()[:60])
    (tmp_path / "2").mkdir()
    written(tmp_path / "2" / "chat.json", CHAT % b"a")
    ids, [problem] = load(tmp_path)
    assert ids == [tmp_path.name, "a"]
    assert problem.place.file == str(tmp_path / "2.json")
