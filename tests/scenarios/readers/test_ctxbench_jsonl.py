from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from ctxbench.scenarios.errors import RecordingError
from ctxbench.scenarios.model import Call, Compaction, Conversation, Mark, Media, Message, Probe, Tool, ToolCall, Usage
from ctxbench.scenarios.read import Batch, detect, read
from ctxbench.scenarios.readers.chats import CtxbenchJsonl
from ctxbench.scenarios.source import Problems

text = st.text(max_size=12)
number = st.floats(allow_nan=False, allow_infinity=False)
count = st.none() | st.integers(0, 2**62)
time = st.none() | number
scalar = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | number | text


def tuples(of: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(of, max_size=3).map(tuple)


usage = st.builds(
    Usage, input=count, output=count, cache_read=count, cache_write=count, cache_write_1h=count, cost=time
)
call = st.builds(
    Call,
    model=text,
    provider=text,
    usage=st.none() | usage,
    started=time,
    marks=tuples(st.builds(Mark, after=st.none() | text, ttl=text)),
    stop=text,
)
message = st.builds(
    Message,
    id=text,
    role=st.sampled_from(["system", "user", "assistant", "tool"]),
    text=text,
    calls=tuples(st.builds(ToolCall, id=text, name=text, arguments=text)),
    answers=st.none() | text,
    name=text,
    time=time,
    thinking=text,
    media=st.lists(st.builds(Media, kind=st.sampled_from(["image", "file"]), width=st.none() | st.just(9))).map(tuple),
    call=st.none() | call,
)
probe = st.builds(
    Probe,
    id=text,
    question=text,
    answers=tuples(text),
    evidence=tuples(text),
    category=text,
    after=text,
    answerable=st.booleans(),
    passages=tuples(text),
    rubric=tuples(text),
    time=time,
)
compaction = st.builds(
    Compaction, after=text, summary=text, first_kept=st.none() | text, tokens_before=count, time=time
)
conversation = st.builds(
    Conversation,
    id=text,
    messages=tuples(message),
    tools=tuples(st.builds(Tool, name=text, description=text, parameters=text)),
    probes=tuples(probe),
    compactions=tuples(compaction),
    source=text,
    licence=text,
    language=text,
    meta=st.dictionaries(text, scalar, max_size=3),
)

GOOD = b'{"ctxbench":"1","id":"%s","messages":[{"id":"a","role":"user","text":"hello"}]}'


def load(file: Path) -> tuple[list[Conversation], list[RecordingError]]:
    problems = Problems()
    return list(read([Batch(CtxbenchJsonl(), (file,))], problems)), problems.errors


def write(folder: Path, lines: Iterable[bytes]) -> Path:
    (folder / "recorded.jsonl").write_bytes(b"\n".join(lines))
    return folder / "recorded.jsonl"


@given(st.lists(conversation, min_size=1, max_size=3))
def test_nothing_is_lost(conversations: list[Conversation]) -> None:
    """Any conversation that is written comes back equal, with the same digest."""
    with TemporaryDirectory() as folder:
        file = write(Path(folder), [each.to_json() for each in conversations])
        problems = Problems()
        back = [each for _, each in CtxbenchJsonl().read([file], problems)]
    assert not problems.errors
    assert back == conversations
    assert [each.digest() for each in back] == [each.digest() for each in conversations]


def test_it_is_known_by_its_content(tmp_path: Path) -> None:
    """The version field and the messages tell it."""
    assert detect(write(tmp_path, [GOOD % b"a"])) == CtxbenchJsonl()


def test_nul_bytes_are_text(tmp_path: Path) -> None:
    """A tool may print any character: an escaped NUL is kept."""
    line = b'{"ctxbench":"1","id":"nul","messages":[{"id":"a","role":"user","text":"a\\u0000b"}]}'
    [conversation], problems = load(write(tmp_path, [line]))
    assert not problems
    assert conversation.messages[0].text == "a\0b"
