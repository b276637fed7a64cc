"""Bad input, through the public way in: one clear error with its place and what to do, and what is around it is read.

What a folder holds besides recordings is in `test_folder.py`; any damage to any format, in `readers/test_fuzz.py`.
"""

import os
import time
from pathlib import Path

import msgspec
import pytest

from ctxbench.harness.engine.plan import RunInputs
from ctxbench.scenarios import source
from ctxbench.scenarios.errors import RecordingError, SpecError
from ctxbench.scenarios.model import Call, Conversation
from ctxbench.scenarios.read import find, read
from ctxbench.scenarios.source import Problems

CHAT = b'{"id":"%s","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"yo"}]}'
OURS = b'{"ctxbench":"1","id":"%s","messages":[{"id":"a","role":"user"},{"id":"b","role":"assistant"%s}]%s}'


def load(*paths: Path, form: str | None = None) -> tuple[list[str], list[RecordingError]]:
    """The ids of the conversations read, and the problems."""
    problems = Problems()
    return [each.id for each in read(find(paths, problems, form), problems)], problems.errors


def written(path: Path, *lines: bytes) -> Path:
    path.write_bytes(b"\n".join(lines))
    return path


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    """A missing path is named, and the others are read."""
    good = written(tmp_path / "good.jsonl", CHAT % b"a")
    ids, [problem] = load(tmp_path / "none.jsonl", good)
    assert ids == ["a"]
    assert str(problem) == f"{tmp_path / 'none.jsonl'}: there is no such file or folder (check the path)"


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf\n\n"])
@pytest.mark.parametrize("form", [None, "openai_chat", "beam"])
def test_an_empty_file(tmp_path: Path, content: bytes, form: str | None) -> None:
    """A file of nothing, blanks or a byte order mark is a problem that says so, whatever it is read as."""
    path = written(tmp_path / "some.json", content)
    ids, [problem] = load(path, form=form)
    assert not ids
    assert str(problem) == f"{path}: the file is empty (leave it out)"


@pytest.mark.parametrize(
    ("line", "field", "what"),
    [
        (b"not JSON", "", "not JSON: invalid character"),
        ((CHAT % b"x")[:40], "", "the JSON ends in the middle"),
        ((CHAT % b"\\ud83d\\ude00")[:-9], "", "the JSON ends in the middle"),
        (CHAT % b"x" + CHAT % b"y", "", "more than one JSON value stands here"),
        (CHAT % b"\xff", "", "not UTF-8"),
        (CHAT % b"\xed\xa0\x80", "", "not UTF-8"),
        (CHAT % b"\0", "", "not JSON: invalid character"),
        (b'{"messages":[{"role":"user","content":' + b"[" * 2000, "", "nested too deep"),
        (b"null", "", "expected object, got null"),
        (b'{"id":"x"}', "", "object missing required field messages"),
        (b'{"messages":[{"role":5}]}', "messages[0].role", "expected str, got int"),
    ],
)
@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_damaged_line(tmp_path: Path, line: bytes, field: str, what: str, at: int) -> None:
    """Wherever a bad line of chats stands, it is one error with line, field and remedy, and the others are read."""
    lines = [CHAT % b"a", CHAT % b"b"]
    lines.insert(at, line)
    path = written(tmp_path / "chats.jsonl", *lines)
    ids, [problem] = load(path)
    assert ids == ["a", "b"]
    assert (problem.place.file, problem.place.line, problem.place.field) == (str(path), at + 1, field)
    assert what in problem.what
    assert problem.remedy


@pytest.mark.parametrize(
    ("line", "text", "note"),
    [
        (
            CHAT[:-2] % b"x" + b',{"role":"user","content":"a\\ud83d\\\\ud83d\\udc00"}]}',
            "a\ufffd\\ud83d\ufffd",
            "half of a surrogate",
        ),
        (
            CHAT[:-2] % b"x" + b',{"role":"user","content":"NaN"}],"model":[NaN,-Infinity]}',
            "NaN",
            "NaN or Infinity, read as null",
        ),
        (
            CHAT[:-2] % b"x" + b',{"role":"get_weather","content":{"C":21}}]}',
            '{"C":21}',
            "role 'get_weather', read as a tool's",
        ),
        (CHAT[:-2] % b"x" + b',{"role":"tool","tool_call_id":"c","content":"21"}]}', "21", "read as a user's message"),
        (OURS % (b"x", b'},{"id":"c","role":"tool","answers":"x","text":"21"', b""), "21", "read as a user's message"),
    ],
)
def test_an_odd_record_is_read(tmp_path: Path, line: bytes, text: str, note: str) -> None:
    """Reading notes what Python's and JavaScript's own writers make, unknown roles, and results without their call."""
    problems = Problems()
    [chat] = read(find([written(tmp_path / "some.jsonl", line)], problems), problems)
    assert not problems.errors
    assert chat.messages[-1].text == text
    assert any(note in each for each in problems.notes)
    assert msgspec.json.decode(chat.to_json(), type=Conversation) == chat


@pytest.mark.parametrize(
    ("in_message", "beside", "field", "what"),
    [
        (b',"time":1e999', b"", "messages[1].time", "number out of range"),
        (b',"colour":1', b"", "messages[1]", "object contains unknown field colour"),
        (b',"text":5', b"", "messages[1].text", "expected str"),
        (b',"time":-1', b"", "messages[1].time", "not a moment"),
        (b',"time":9},{"id":"c","role":"user","time":8', b"", "messages[2].time", "1 s before"),
        (b'},{"id":"b","role":"user"', b"", "messages[2].id", "stands twice"),
        (b'},{"id":"c","role":"robot"', b"", "messages[2].role", "robot"),
        (b',"answers":"c"', b"", "messages[1].answers", "role 'assistant' answers a tool call"),
        (b"", b',"compactions":[{"after":"z","summary":"s"}]', "compactions[0]", "'z' names no message"),
        (b"", b',"meta":{"a":[]}', "meta[...]", "expected"),
    ],
)
def test_a_wrong_field(tmp_path: Path, in_message: bytes, beside: bytes, field: str, what: str) -> None:
    """A value that no recording can have is one error with line, field and remedy, and the lines around it are read."""
    good = [OURS % (name, b"", b"") for name in (b"first", b"last")]
    ids, [problem] = load(written(tmp_path / "ours.jsonl", good[0], OURS % (b"x", in_message, beside), good[1]))
    assert ids == ["first", "last"]
    assert (problem.place.line, problem.place.field) == (2, field)
    assert what in problem.what
    assert problem.remedy


@pytest.mark.parametrize(
    ("usage", "field", "what"),
    [
        (b'"input":-5', ".input", "-5 is no number of tokens"),
        (b'"output":%d' % 2**70, ".output", "no number of tokens"),
        (b'"cost":-1', ".cost", "-1.0 is no cost in US dollars"),
        (b'"input":9,"cache_read":8,"cache_write":2', "", "more than the prompt's 9"),
        (b'"cache_write":1,"cache_write_1h":2', "", "more than the 1 written"),
    ],
)
def test_a_usage_that_cannot_be(tmp_path: Path, usage: bytes, field: str, what: str) -> None:
    """It costs the call its usage, not the conversation its messages: one error with line, field and remedy."""
    bad = OURS % (b"x", b',"call":{"model":"m","usage":{%s}}' % usage, b"")
    path = written(tmp_path / "ours.jsonl", OURS % (b"first", b"", b""), bad)
    problems = Problems()
    _, chat = read(find([path], problems), problems)
    [problem] = problems.errors
    assert (problem.place.line, problem.place.field) == (2, f"messages[1].call.usage{field}")
    assert what in problem.what
    assert problem.remedy
    assert chat.messages[1].call == Call("m")


@pytest.mark.parametrize(
    ("probes", "field", "what", "left"),
    [
        (b'{"id":"p","question":"?","after":"z"}', "probes[0].after", "'z' names no message", []),
        (
            b'{"id":"a","question":"?","after":"z"},{"id":"p","question":"?"},{"id":"b","question":"?","after":"y"}',
            "probes[0].after",
            "'z' names no message, and 1 more",
            [("p", ())],
        ),
        (
            b'{"id":"p","question":"?"},{"id":"q","question":"?","evidence":["x","%s","y","x"]}' % b"b",
            "probes[1].evidence",
            "evidence 'x' names no message, and 2 more",
            [("p", ()), ("q", ("b",))],
        ),
        (
            b'{"id":"p","question":"?","after":"a","evidence":["b"]}',
            "probes[0].evidence",
            "evidence 'b' comes after the question",
            [("p", ("b",))],
        ),
    ],
)
def test_probes_that_point_nowhere(
    tmp_path: Path, probes: bytes, field: str, what: str, left: list[tuple[str, tuple[str, ...]]]
) -> None:
    """Evidence and places that name no message are named once with their number; the rest of it all goes on."""
    path = written(tmp_path / "ours.jsonl", OURS % (b"x", b"", b',"probes":[%s]' % probes))
    problems = Problems()
    [chat] = read(find([path], problems), problems)
    [problem] = problems.errors
    assert (problem.place.line, problem.place.field, problem.what) == (1, field, what)
    assert problem.remedy
    assert [(each.id, each.evidence) for each in chat.probes] == left


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_line_over_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """No line can take all memory, the first one neither: it is passed over and the others are read."""
    monkeypatch.setattr(source, "LONGEST", 200)
    lines = [CHAT % b"a", CHAT % b"b"]
    lines.insert(at, CHAT % (b"x" * 1000))
    ids, [problem] = load(written(tmp_path / "chats.jsonl", *lines))
    assert ids == ["a", "b"]
    assert (problem.place.line, problem.what) == (at + 1, "a line of over 0 MiB")


def test_a_damaged_element_of_an_array(tmp_path: Path) -> None:
    """Of an array that stands on lines, one damaged element is lost and the others are read."""
    elements = [CHAT % b"a", b'{"messages": 5 5}', CHAT % b"b"]
    ids, [problem] = load(written(tmp_path / "chats.json", b"[", b",\n".join(elements), b"]"))
    assert ids == ["a", "b"]
    assert problem.place.line == 3


def test_an_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that the system does not let us read is a problem even inside a folder, and the others are read."""
    written(tmp_path / "a.jsonl", CHAT % b"a")
    shut = written(tmp_path / "b.jsonl", CHAT % b"b")
    opened = os.open

    def refusing(path: str, *args: int) -> int:
        if path == str(shut):
            raise PermissionError(13, "Permission denied", path)
        return opened(path, *args)

    monkeypatch.setattr("ctxbench.scenarios.files.os.open", refusing)
    for form in (None, "openai_chat"):
        ids, [problem] = load(tmp_path, form=form)
        assert ids == ["a"]
        assert str(problem) == f"{shut}: cannot be read: Permission denied (check that it may be read)"


def test_a_format_that_does_not_fit(tmp_path: Path) -> None:
    """Every record says what it lacks; the first also says what is looked for, what is there, and what would fit."""
    path = written(tmp_path / "chats.jsonl", CHAT % b"a", CHAT % b"b")
    ids, problems = load(path, form="tau_bench")
    assert not ids
    lacks = "object missing required field task_id"
    assert [str(problem) for problem in problems] == [
        f"{path}:1: {lacks}; tau_bench looks for [].reward, [].traj, [].traj[].role, "
        "and finds .id, .messages, .messages[].content, .messages[].role (--format openai_chat fits it)",
        f"{path}:2: {lacks} (correct it, or leave this record out; is it of this format?)",
    ]
    with pytest.raises(SpecError, match="openai_chat"):
        load(path, form="openai")


@pytest.mark.parametrize(
    ("form", "what"),
    [
        ("openai_chat", "--format openai_chat: no conversation is there, and no path is given"),
        ("beam", "--format beam: no conversation is there, and no path is given"),
        ("huggingface", "--format huggingface: neither a data set nor a path is named"),
    ],
)
def test_a_format_without_a_path(form: str, what: str) -> None:
    """A format alone says what is to be named with it."""
    problems = Problems()
    assert not list(RunInputs((), form).read(problems))
    [problem] = problems.errors
    assert str(problem).startswith(what)
    assert "path" in problem.remedy or "files" in problem.remedy


def test_conversations_of_one_id(tmp_path: Path) -> None:
    """Ids stay unique, also where a recorded one looks like a suffix that a doubled one would get; a note says so."""
    path = written(tmp_path / "chats.jsonl", *(CHAT % name for name in (b"a", b"a~2", b"a", b"a", b"a~2")))
    problems = Problems()
    assert [each.id for each in read(find([path], problems), problems)] == ["a", "a~2", "a~3", "a~4", "a~2~2"]
    assert problems.notes == ["3 conversations had the id of an earlier one and were given another: a~3, a~4, a~2~2"]


def test_requests_of_one_growing_chat(tmp_path: Path) -> None:
    """A note says which begin with all of an earlier one. The same one twice, or another end, does not count."""
    roles = zip(["user", "assistant"] * 3, "abcdef", strict=True)
    said = [f'{{"role": "{role}", "content": "{text}"}}' for role, text in roles]
    lists = [*(said[:size] for size in (1, 3, 5)), said[:5], [*said[:2], said[4]]]
    path = written(tmp_path / "log.jsonl", *(f'{{"messages": [{", ".join(each)}]}}'.encode() for each in lists))
    problems = Problems()
    assert len(list(RunInputs((str(path),)).read(problems))) == 5
    [note] = problems.notes
    assert note.startswith("4 conversations begin with all of an earlier one (log.2, log.3, log.4, log.5): requests of")


def test_strict_stops_at_the_first_problem(tmp_path: Path) -> None:
    """With `strict` the first problem is raised, and what stood before it has been read."""
    path = written(tmp_path / "chats.jsonl", CHAT % b"a", b"broken", CHAT % b"b")
    problems = Problems(strict=True)
    read_so_far: list[Conversation] = []
    with pytest.raises(RecordingError, match="not JSON"):
        read_so_far.extend(read(find([path], problems), problems))
    assert problems.errors == []


def test_a_string_that_nothing_closes(tmp_path: Path) -> None:
    """A megabyte of escaped quotes, cut off, is told in one pass: quadratic time would be hours."""
    before = time.perf_counter()
    cut = b'{"messages": [{"role": "user", "content": "' + b'say \\"x\\" ' * 100_000
    ids, [problem] = load(written(tmp_path / "chats.json", b"[", CHAT % b"a" + b",", cut))
    assert ids == ["a"]
    assert "ends in the middle" in problem.what
    assert time.perf_counter() - before < 5


@pytest.mark.parametrize(
    ("content", "what", "remedy"),
    [
        ('{"resourceMetrics": [{}]}', "looks like OpenTelemetry metrics", "export spans"),
        ('[{"traceId": "t", "startTime": "now", "type": "SPAN"}]', "observations of Langfuse", "with input and output"),
        ("SQLite format 3\0 and more", "is an SQLite database", "export its messages"),
        ('{"trajectory": [], "history": [{"role": "us', "the JSON ends in the middle", "copy it again"),
    ],
)
def test_a_file_that_is_not_read_says_why(content: str, what: str, remedy: str, tmp_path: Path) -> None:
    """A file of a known program says what to export instead, and one that was cut off says so, alone or in a folder."""
    path = tmp_path / "some.json"
    path.write_text(content)
    problems = Problems()
    assert list(read(find([path], problems), problems)) == []
    [error] = problems.errors
    assert what in error.what
    assert remedy in error.remedy
    problems = Problems()
    assert list(read(find([tmp_path], problems), problems)) == []
    assert [what in line for line in problems.ignored] == [True]


def test_brackets_alone(tmp_path: Path) -> None:
    """A file of brackets takes neither all memory nor minutes, and the file beside it is read."""
    path = written(tmp_path / "deep.json", b"[" * 200_000)
    ids, problems = load(path, written(tmp_path / "good.jsonl", CHAT % b"a"), form="openai_chat")
    assert (ids, "nested too deep" in problems[0].what) == (["a"], True)


def test_a_record_of_too_many_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is one record has a number of values that memory holds: each takes more there than in the file."""
    monkeypatch.setattr(source, "LONGEST", 100)
    monkeypatch.setattr(source, "_MOST_VALUES", 50)
    path = written(tmp_path / "many.json", b'{"eval": {}, "samples": [' + b"{}," * 40 + b"{}]}")
    assert load(path, form="inspect")[1][0].what.startswith("one record of over 50 values")
