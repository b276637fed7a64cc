"""Every reader on damaged recordings: what is wrong is named with its place, what is whole comes out, nothing else."""

import copy
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from ctxbench.scenarios.errors import Place
from ctxbench.scenarios.model import Conversation, check
from ctxbench.scenarios.read import detect, find, read
from ctxbench.scenarios.readers import readers
from ctxbench.scenarios.source import Problems
from tests.examples import examples
from tests.scenarios.readers.samples import SAMPLES, Sample

ODD = [
    *("null", "true", "0", "-1", "1.5", "1e300", "1e999", "NaN", "-Infinity", "9" * 30, "-" + "9" * 30, "9" * 5000),
    *(
        '""',
        '" "',
        '"x"',
        '"\\u0000"',
        '"\\ud800"',
        '"\\udc00x"',
        '"\\ud83d\\ude00"',
        '"5~2"',
        '"r0"',
        '"' + "9" * 5000 + '"',
    ),
    *("[]", "[null]", "[[]]", '["a"]', "{}", '{"a": null}', '{"": []}', '[{"type": "text"}]', '{"type": "text"}'),
    *("[" * 100 + "]" * 100, "[" * 10_000, "", ",", "}", "]"),
    *(
        '"0001-01-01T00:00:00+23:59"',
        '"9999-12-31T23:59:59-23:59"',
        '"2023-11-14"',
        '"session_01"',
        '"system"',
        '"tool"',
    ),
]
"""JSON texts, and some that are none, to stand where something else did."""
DEEP = st.integers(200, 500).map(lambda depth: '{"a":[' * depth + "]}" * depth)
"""On both sides of what can be decoded, and of what can only just be."""
BYTES = [
    b"",
    b"\n",
    b"\r\n",
    b"\n\n \n",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\xed\xa0\x80",
    b"\0",
    b'"',
    b"\\",
    b"\\u",
    b"[",
    b"{",
]
FEW = examples(60, ignored=HealthCheck)

SEVERAL = {
    "atif": 2,
    "claude_code": 2,
    "claude_stream": 2,
    "copilot_cli": 2,
    "http": 6,
    "inspect": 3,
    "swe_agent": 2,
    "tau2": 2,
}
"""Number of conversations in a sample, where the form does not tell."""

formats = pytest.mark.parametrize("name", SAMPLES)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value in a JSON value, its own included."""
    found = [path]
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            found += places(each, (*path, key))
    return found


def changed(records: Any, path: tuple[Any, ...], how: str, hole: str) -> Any:
    """The records with a hole at the path, or with that place removed, renamed, or there again with a hole."""
    if not path:
        return hole
    records = copy.deepcopy(records)
    parent = records
    for key in path[:-1]:
        parent = parent[key]
    key = path[-1]
    match how, parent:
        case "remove", _:
            del parent[key]
        case "rename", dict():
            parent[{"session_1": "session_01"}.get(key, f"{key}9")] = parent.pop(key)
        case "again", dict():
            parent[f"AGAIN {key}"] = hole
        case "again", list():
            parent.insert(key, parent[key])
        case _:
            parent[key] = hole
    return records


@st.composite
def mutated(draw: st.DrawFn, sample: Sample) -> bytes:
    """A recording in which up to three values are not what they should be."""
    records = sample.records(2)
    odd = draw(st.lists(st.sampled_from(ODD) | DEEP, min_size=1, max_size=3))
    for at in range(len(odd)):
        how = draw(st.sampled_from(["replace", "replace", "remove", "again", "rename"]))
        records = changed(records, draw(st.sampled_from(places(records))), how, f"HOLE {at}")
    text = sample.text(records).decode().replace('"AGAIN ', '"')
    for at, each in enumerate(odd):
        text = text.replace(f'"HOLE {at}"', each)
    return text.encode()


@st.composite
def spoilt(draw: st.DrawFn, sample: Sample) -> bytes:
    """The bytes of a recording, damaged in up to three places."""
    text = sample.text(sample.records(2))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        to = min(len(text), at + draw(st.sampled_from([0, 1, 1, 2, 40])))
        match draw(st.sampled_from(["cut", "delete", "insert", "flip", "crlf", "join", "front", "tail"])):
            case "cut":
                text = text[:at]
            case "delete":
                text = text[:at] + text[to:]
            case "insert":
                text = text[:at] + draw(st.sampled_from(BYTES) | st.binary(max_size=8)) + text[to:]
            case "flip":
                text = (
                    text[:at]
                    + bytes(byte ^ (1 << draw(st.integers(0, 7))) for byte in text[at : at + 1])
                    + text[at + 1 :]
                )
            case "crlf":
                text = text.replace(b"\n", b"\r\n")
            case "join":
                text = text.replace(b"\n", b"", 1)
            case "front":
                text = draw(st.sampled_from(BYTES)) + text
            case "tail":
                text = text[at:]
    return text


def come_out(name: str, sample: Sample, text: bytes, form: str | None) -> list[Conversation]:
    """What is read of a file with this text, once it is known to keep the laws."""
    with TemporaryDirectory() as folder:
        path = sample.write(Path(folder), text)
        files = {str(path), *(str(Path(folder, more)) for more, _ in sample.beside)}
        problems = Problems()
        found = list(read(find([path], problems, form), problems))
        for problem in problems.errors:
            assert problem.what
            assert problem.place.file in files
            str(problem).encode()
        for conversation in found:
            check(conversation, Place(str(path)))
            assert msgspec.json.decode(conversation.to_json(), type=Conversation) == conversation
        assert len({conversation.id for conversation in found}) == len(found)
        assert found or problems.errors or problems.ignored or readers()[name].folder, "lost in silence"
        return found


def test_every_reader_has_a_sample() -> None:
    """A reader that is added is put through these laws too, but those of no JSON: Hugging Face's tables, Markdown."""
    assert set(SAMPLES) == set(readers()) - {"aider", "huggingface"}


@formats
def test_the_samples_are_sound(name: str, tmp_path: Path) -> None:
    """Each is detected as its own format, all its conversations come out, and nothing is wrong with it."""
    sample = SAMPLES[name]
    path = sample.write(tmp_path, sample.text(sample.records(2)))
    assert type(detect(path)) is readers()[name]
    problems = Problems()
    found = list(read(find([path], problems), problems))
    assert not problems.errors
    expected = {"lines": 2, "array": 2, "object": 1, "session": 1} | SEVERAL
    assert len(found) == expected.get(name, expected[sample.form])


@formats
@FEW
@given(data=st.data())
def test_wrong_values(name: str, data: st.DataObject) -> None:
    """Any value may be another, missing, doubled, huge, deep or no JSON: only problems and sound conversations."""
    text = data.draw(mutated(SAMPLES[name]))
    come_out(name, SAMPLES[name], text, name)
    come_out(name, SAMPLES[name], text, None)


@formats
@FEW
@given(data=st.data())
def test_wrong_bytes(name: str, data: st.DataObject) -> None:
    """Any bytes may be cut off, deleted, inserted or flipped: only problems and sound conversations."""
    text = data.draw(spoilt(SAMPLES[name]))
    come_out(name, SAMPLES[name], text, name)
    come_out(name, SAMPLES[name], text, None)


@pytest.mark.parametrize("name", [name for name, sample in SAMPLES.items() if sample.form == "lines"])
@FEW
@given(data=st.data())
def test_a_spoilt_line_costs_only_itself(name: str, data: st.DataObject) -> None:
    """Whatever one line holds, and wherever it stands, the conversations of the lines around it come out the same."""
    sample = SAMPLES[name]
    good = sample.records(3)
    damaged = data.draw(mutated(sample) | spoilt(sample)).replace(b"\n", data.draw(st.sampled_from([b"", b" "])))
    lines = [json.dumps(record).encode() for record in good]
    array = damaged.lstrip().startswith(b"[") and damaged.rstrip().endswith((b"[", b"{", b",", b":"))
    lines.insert(data.draw(st.integers(1 if array else 0, 3)), damaged)  # as a first line, that is an array's
    assert contents(come_out(name, sample, sample.text(good), name)) <= contents(
        come_out(name, sample, b"\n".join(lines), name)
    )


@pytest.mark.parametrize("name", [name for name, sample in SAMPLES.items() if sample.form in ("lines", "array")])
@FEW
@given(data=st.data())
def test_a_wrong_element_costs_only_itself(name: str, data: st.DataObject) -> None:
    """Whatever value one element of an array is, the conversations of the others come out the same."""
    sample = SAMPLES[name]
    good = sample.records(3)
    odd = [each for each in ODD if each.count("[") == each.count("]") and each not in ("", ",", "}")]
    record = changed(good[1], data.draw(st.sampled_from(places(good[1]))), "replace", "HOLE")
    element = json.dumps(record).replace('"HOLE"', data.draw(st.sampled_from(odd)))
    elements = [json.dumps(each) for each in good]
    elements.insert(data.draw(st.integers(0, 3)), element)
    whole = come_out(name, sample, sample.text(good), name)
    text = "[\n" + ",\n".join(elements) + "\n]"
    assert contents(whole) <= contents(come_out(name, sample, text.encode(), name))


@pytest.mark.parametrize("name", [name for name, sample in SAMPLES.items() if sample.form == "session"])
@FEW
@given(data=st.data())
def test_a_spoilt_line_of_a_session_costs_only_itself(name: str, data: st.DataObject) -> None:
    """A line that is no JSON, wherever it stands between the others, changes no message and no compaction."""
    sample = SAMPLES[name]
    lines = [json.dumps(line).encode() for line in sample.records(1)]
    whole = come_out(name, sample, b"\n".join(lines), name)
    junk = data.draw(
        st.sampled_from([lines[1][:40], b"\xff\xfe", b"{", b"null", b"[]", b'{"type": 5}', b"\0", b"{}{}"])
    )
    lines.insert(data.draw(st.integers(1, len(lines))), junk)
    assert contents(come_out(name, sample, b"\n".join(lines), name)) == contents(whole)


DATABASE = Path(__file__).parents[2] / "goldens/recordings/opencode/a_database_with_its_log"


@FEW
@given(data=st.data())
def test_a_damaged_database_or_log(data: st.DataObject) -> None:
    """Any bytes of a database and its write-ahead log may be others or be cut off: sound conversations and problems."""
    with TemporaryDirectory() as folder:
        for name in ("opencode.db", "opencode.db-wal"):
            damaged = bytearray((DATABASE / name).read_bytes())
            for _ in range(data.draw(st.integers(0, 3))):
                damaged[data.draw(st.integers(0, len(damaged) - 1) | st.integers(0, 60))] = data.draw(
                    st.integers(0, 255)
                )
            del damaged[data.draw(st.just(len(damaged)) | st.integers(100, len(damaged))) :]
            (Path(folder) / name).write_bytes(damaged)
        problems = Problems()
        for conversation in read(find([Path(folder)], problems), problems):
            check(conversation, Place("opencode.db"))


def contents(found: list[Conversation]) -> set[bytes]:
    """What the conversations hold, without the names that follow from where they stand."""
    return {
        msgspec.json.encode(
            (each.messages, each.tools, [(probe.question, probe.answers) for probe in each.probes], each.compactions)
        )
        for each in found
    }
