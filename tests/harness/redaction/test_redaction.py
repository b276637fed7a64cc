"""Redaction: what is found becomes a stable placeholder, all else stays, and a key file has it back."""

from __future__ import annotations

import json
import random
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ctxbench.harness.folder.run import load
from ctxbench.harness.redaction.find import texts_of
from ctxbench.harness.redaction.redact import KeyFile, Redaction, Redactor, restored
from ctxbench.scenarios.errors import MissingExtra, RunError
from ctxbench.scenarios.model import (
    Call,
    Compaction,
    Conversation,
    Fact,
    Message,
    Probe,
    Tool,
    ToolCall,
    faults,
)
from tests.builders import conversations, talk
from tests.harness.command import ctxbench, said

pytest.importorskip("detect_secrets")
pytest.importorskip("phonenumbers")

from tests.harness.redaction.recall import conversation as planted_conversation
from tests.harness.redaction.recall import measured

ROOT = Path(__file__).parents[3]
KEY = "ghp_" + "a1B2c3D4e5F6" * 3


def redacted(*texts: str, names: tuple[str, ...] = (), regions: tuple[str, ...] = ("US", "CN")) -> list[str]:
    """The texts of a conversation, redacted."""
    original = talk(*(("user", text) for text in texts))
    redactor = Redactor(Redaction(names, regions), [original])
    [result] = redactor.conversations([original])
    return [message.text for message in result.messages]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"use {KEY}.", "use <SECRET_1>."),
        ("mail jane@firma.de, or <jim@firma.de>", "mail <EMAIL_1>, or <<EMAIL_2>>"),
        ("jane@firma.de and jane@firma.de", "<EMAIL_1> and <EMAIL_1>"),
        ("call +1 415 555 2671 or (415) 555-2671", "call <PHONE_1> or <PHONE_2>"),
        ("手机：13912345678。", "手机：<PHONE_1>。"),
        ("cd /home/jdoe && ls /home/jdoe/x", "cd <HOME_1> && ls <HOME_1>/x"),
        ("C:\\Users\\jdoe\\x", "<HOME_1>\\x"),
        ("/Users/mmuster/x of mmuster", "<HOME_1>/x of <NAME_1>"),
        ("/Users/max/x of max(1, 2)", "<HOME_1>/x of max(1, 2)"),
        ("-Users-ann-code /Users/ann/x ann", "-Users-<NAME_1>-code <HOME_1>/x ann"),
        (
            "Author: Zoë Quist <z@firma.de>\nZoë said; Quist did",
            "Author: <NAME_1> <<EMAIL_1>>\n<NAME_2> said; <NAME_3> did",
        ),
        ('{"a": "x\\njane@firma.de"}', '{"a": "x\\n<EMAIL_1>"}'),
        ('{"a": "\\u003cjane@firma.de\\u003e"}', '{"a": "\\u003c<EMAIL_1>\\u003e"}'),
        ("postgres://admin:tr0ub4dor@db.firma.de/x", "postgres://admin:<SECRET_1>@db.firma.de/x"),
    ],
    ids=lambda _: "",  # pytest puts names into the environment, whose addresses are secrets
)
def test_what_is_found(text: str, expected: str) -> None:
    """Each kind has a placeholder of its own, the same value always the same one, and what is around it stays."""
    assert redacted(text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "git clone git@github.com:owner/repository.git",
        "icon@2x.png and @types/node@18.0.1",
        "34-@pytest.fixture\n+@app.route",
        "2024-10-15 12:30:45, 1757015025, 192.168.100.200, 3.14159265",
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "/home/user/x, /home/runner/work, /Users/Shared",
        "https://host/home/page and ./home/page",
        "noreply bot <tag>, List<String> and <EMAIL>",
        "From: here to there",
        "api_key = os.environ['KEY']",
        "123e4567-e89b-12d3-a456-426614174000",
        "",
    ],
)
def test_what_stays(text: str) -> None:
    """Code, times, versions, digests and the folders of machines are nobody's."""
    assert redacted(text) == [text]


def test_names_that_are_given() -> None:
    """A given name is found in any case, over line breaks, as JSON escapes it, and as no part of a word."""
    texts = ("Aïda Müller", "AÏDA\nMÜLLER", json.dumps({"a": "Aïda Müller"}), "XAïda Müllerin", "王小明说")
    assert redacted(*texts, names=("Aïda Müller", "王小明")) == [
        "<NAME_1>",
        "<NAME_2>",
        '{"a": "<NAME_3>"}',
        "XAïda Müllerin",
        "<NAME_4>说",
    ]


def test_names_are_known_before_the_first_text() -> None:
    """A name that the last conversation tells is gone from the first."""
    first, last = talk(("user", "ask jdoe42"), name="a"), talk(("user", "ls /home/jdoe42/x"), name="b")
    redactor = Redactor(Redaction(), [first, last])
    assert [one.messages[0].text for one in redactor.conversations([first, last])] == ["ask <NAME_1>", "ls <HOME_1>/x"]


def test_a_region_has_its_numbers() -> None:
    """A number without a country code is found in the regions that are named, and an unknown region is an error."""
    text = "030 90227-1234 ok"
    assert redacted(text) == [text]
    assert redacted("x 089 636-48018 ok", regions=("DE",)) == ["x <PHONE_1> ok"]
    with pytest.raises(RunError, match="--redact-region XX: is no region"):
        redacted(text, regions=("XX",))


def test_every_text_and_nothing_else() -> None:
    """Texts of every field are redacted; roles, ids of messages and calls, tools' names, models and usage are not."""
    mail = "jane@firma.de"
    tool = Tool(mail, mail, json.dumps({"description": mail}))
    call = Call(mail, mail, tools=(tool,), error=mail, request_id=mail)
    original = Conversation(
        mail,
        (
            Message(mail, "user", mail, name=mail),
            Message("a", "assistant", "", (ToolCall(mail, mail, json.dumps([mail])),), thinking=mail, call=call),
            Message("t", "tool", mail, answers=mail, name=mail),
        ),
        tools=(tool,),
        probes=(Probe("p", mail, (mail,), (mail,), passages=(mail,), rubric=(mail,)),),
        facts=(Fact(mail, mail),),
        compactions=(Compaction(mail, mail, mail, call=call),),
        source=mail,
        meta={"unit": mail, "number": 1},
    )
    redactor = Redactor(Redaction(), [original])
    [result] = redactor.conversations([original])
    place = "<EMAIL_1>"
    assert set(texts_of(result)) == {place, "", json.dumps([place]), json.dumps({"description": place})}
    assert result.messages[0].id == result.messages[1].calls[0].id == result.messages[2].answers == mail
    assert result.messages[1].calls[0].name == result.messages[2].name == result.tools[0].name == mail
    assert result.probes[0].evidence == (mail,)
    assert not list(faults(result))
    assert redactor.different == {"email": 1}
    assert redactor.summary() == f"{redactor.counts['email']} e-mail addresses (1 different)"


PIECES = st.sampled_from(
    [
        *("jane@firma.de", "/home/jdoe42/x", "C:\\Users\\jdoe42\\x", "+1 415 555 2671", KEY, "jdoe42", '"', "\\", "\n"),
        *(
            "<EMAIL_1>",
            "<NAME_2>",
            "Author: Zoë Quist <z@firma.de>",
            '{"password": "hunter22x"}',
            "é",
            "王",
            " ",
            "{",
            "[",
        ),
        "-----BEGIN PRIVATE KEY-----" + "a1B2" * 9,
    ]
)
TEXTS = st.lists(PIECES, max_size=8).map("".join)
JSON_TEXTS = st.builds(
    lambda value, ascii_only: json.dumps(value, ensure_ascii=ascii_only),
    st.recursive(TEXTS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3)),
    st.booleans(),
)


@given(texts=st.lists(TEXTS | JSON_TEXTS, min_size=1, max_size=4))
def test_json_stays_json(texts: list[str]) -> None:
    """Arguments that were JSON are JSON afterwards, with the same structure; those that were not do not matter."""
    calls = tuple(ToolCall(f"c{at}", "tool", text) for at, text in enumerate(texts))
    original = Conversation("c", (Message("u", "user", "x"), Message("a", "assistant", "", calls)))
    redactor = Redactor(Redaction(), [original])
    [result] = redactor.conversations([original])
    for before, after in zip(texts, result.messages[1].calls, strict=True):
        try:
            value = json.loads(before)
        except ValueError:
            continue
        assert _shape(json.loads(after.arguments)) == _shape(value)


def _shape(value: object) -> object:
    if isinstance(value, dict):
        return [_shape(inner) for inner in value.values()]
    return [_shape(inner) for inner in value] if isinstance(value, list) else type(value)


@given(original=conversations(), texts=st.lists(TEXTS | JSON_TEXTS, min_size=1))
def test_a_key_has_it_back(original: Conversation, texts: list[str]) -> None:
    """Restoring gives the bytes of the plain conversion, even where these had placeholders of their own."""
    said = [replace(message, text=texts[at % len(texts)]) for at, message in enumerate(original.messages)]
    original = replace(original, messages=tuple(said))
    key = KeyFile()
    results = list(Redactor(Redaction(("jane",)), [original], key).conversations([original]))
    assert [one.to_json() for one in restored(results, key, "k")] == [original.to_json()]


def test_a_key_goes_on() -> None:
    """A second output with the same key has the same placeholders for the same values, and both can be restored."""
    key, originals = KeyFile(), [talk(("user", f"jane@firma.de a{at}@firma.de"), name=str(at)) for at in range(2)]
    results = [one for each in originals for one in Redactor(Redaction(), [each], key).conversations([each])]
    assert [one.messages[0].text for one in results] == ["<EMAIL_1> <EMAIL_2>", "<EMAIL_1> <EMAIL_3>"]
    assert list(restored(results, key, "k")) == originals


def test_a_key_of_another() -> None:
    """A conversation that the key does not know, or that was changed since, is refused."""
    key, original = KeyFile(), talk(("user", "jane@firma.de"))
    [result] = Redactor(Redaction(), [original], key).conversations([original])
    changed = replace(result, messages=(replace(result.messages[0], text="<EMAIL_1>!"),))
    for one, other in ((changed, key), (result, KeyFile())):
        with pytest.raises(RunError, match="was not redacted with this key, or was changed since"):
            list(restored([one], other, "k"))


def test_recall_is_as_the_docs_say() -> None:
    """docs/sharing.md promises no more of a kind than is found of what is planted."""
    page = (ROOT / "docs" / "sharing.md").read_text("utf-8")
    promised = {kind: float(share) for kind, share in re.findall(r"^\| (.+) \| [\d,]+ \| ([\d.]+) % \|$", page, re.M)}
    found = measured(100, 0)
    assert found.keys() == promised.keys()
    assert {kind: round(100 * number / planted, 1) for kind, (planted, number) in found.items()} == promised


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that is missing is named, with the extra that brings it."""
    monkeypatch.setitem(sys.modules, "phonenumbers", None)
    with pytest.raises(MissingExtra, match=re.escape("pip install 'ctxbench[redact]'")):
        Redactor(Redaction())


def recording(folder: Path) -> tuple[Path, list[str]]:
    """A file in a home folder with planted values, and those that are to be gone from everything."""
    made, planted = planted_conversation(0, random.Random(5))
    file = folder / "home" / "zquist7" / "talks.jsonl"
    file.parent.mkdir(parents=True)
    file.write_bytes(made.to_json() + b"\n" + talk(("user", "hi"), ("assistant", "jane@firma.de")).to_json() + b"\n")
    missed = ("alone", "disguised", "another")
    return file, ["jane@firma.de", *(one.value for one in planted if not any(word in one.kind for word in missed))]


def is_there(value: str, where: Path) -> list[Path]:
    """The files of a folder in which a value stands, plainly or as JSON has it."""
    forms = {value.encode(), json.dumps(value)[1:-1].encode()}
    return [file for file in where.rglob("*") if file.is_file() and any(form in file.read_bytes() for form in forms)]


def test_convert(tmp_path: Path) -> None:
    """The command redacts, counts, and has the bytes of the plain conversion back from a file that only we may read."""
    file, values = recording(tmp_path)
    out = tmp_path / "out"
    out.mkdir()
    words = ("convert", file, "--redact", "--json", "--to", "red.jsonl", "--redact-key", tmp_path / "key.json")
    done = ctxbench(*words, cwd=out)
    counts = json.loads(done.stdout)["redacted"]
    assert set(counts) == {"secret", "email", "phone", "home", "name"}
    assert counts["home"]["places"] >= counts["home"]["different"] >= 4
    assert not [value for value in values if is_there(value, out) or value in done.stderr]
    assert any(line.startswith("redacted: ") and "look at what is left" in line for line in said(done.stderr))
    assert (tmp_path / "key.json").stat().st_mode & 0o777 == 0o600
    ctxbench(*words[:5], "again.jsonl", "--redact-key", tmp_path / "key.json", cwd=out, code=None)
    ctxbench("convert", file, "--to", tmp_path / "plain.jsonl", cwd=out)
    ctxbench("convert", "red.jsonl", "--restore", tmp_path / "key.json", "--to", tmp_path / "back.jsonl", cwd=out)
    assert (tmp_path / "back.jsonl").read_bytes() == (tmp_path / "plain.jsonl").read_bytes()


def test_conversions_are_alike(tmp_path: Path) -> None:
    """The same recordings give the same bytes, with a key and without one, in every format."""
    file, values = recording(tmp_path)
    for name, more in (("a", ("--redact-key", "k")), ("b", ()), ("c", ("--as", "openai")), ("d", ("--as", "dataset"))):
        ctxbench("convert", file, "--redact", "--to", name, *more, cwd=tmp_path)
        where = tmp_path / name
        written = [where] if where.is_file() else [one for one in where.rglob("*") if one.is_file()]
        assert not [value for value in values for one in written if value.encode() in one.read_bytes()]
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--redact-name", "Jane"), "are for --redact: add it"),
        (("--redact", "--redact-name", "J"), "one letter is in too many words"),
        (("--redact", "--redact-names", "nowhere"), "--redact-names nowhere: cannot be read"),
        (("--redact", "--redact-region", "Mars"), "--redact-region MARS: is no region"),
        (("--redact-key", "k"), "--redact-key is for --redact into ctxbench JSONL"),
        (("--redact", "--redact-key", "k", "--as", "openai"), "--redact-key is for --redact into ctxbench JSONL"),
        (("--redact", "--redact-key", "out.jsonl"), "--redact-key out.jsonl: is the file that is written"),
        (("--redact", "--redact-key", "in.jsonl"), "is one of the recordings that are read"),
        (("--redact", "--redact-key", "other"), "other: is no key file of `convert --redact-key`"),
        (("--redact", "--restore", "other"), "give one of them"),
        (("--restore", "nowhere"), "nowhere: the key file cannot be read"),
        (("--restore", "other"), "other: is no key file of `convert --redact-key`"),
    ],
)
def test_mistakes(words: tuple[str, ...], error: str, tmp_path: Path) -> None:
    """Each mistake has one line, and nothing is written."""
    (tmp_path / "in.jsonl").write_bytes(talk(("user", "hi"), ("assistant", "a")).to_json() + b"\n")
    (tmp_path / "other").write_text("{}[")
    done = ctxbench("convert", "in.jsonl", "--to", "out.jsonl", *words, cwd=tmp_path, code=2)
    assert error in done.stderr
    assert len(said(done.stderr)) == 1
    assert sorted(file.name for file in tmp_path.iterdir()) == ["in.jsonl", "other"]


def test_run(tmp_path: Path) -> None:
    """A run replays the redacted conversations: nothing of what was found stands in the folder or on a stream."""
    file, values = recording(tmp_path)
    out = tmp_path / "out"
    out.mkdir()
    words = ("run", file, "-s", "none", "-s", "window(max_tokens=2000)", "--redact", "--report", "-o", "r")
    words += ("--redact-name", "zquist7")
    done = ctxbench(*words, cwd=out)
    assert not [value for value in [*values, "zquist7"] if is_there(value, out) or value in done.stdout + done.stderr]
    manifest = load(out / "r").manifest
    assert isinstance(manifest.redacted, dict)
    assert set(manifest.redacted) == {"secret", "email", "phone", "home", "name"}
    [note] = [line for line in said(done.stderr) if line.startswith("note: redacted before the replay: ")]
    assert note.endswith("; tokens are counted with the placeholders")
    texts = "".join(text for one in load(out / "r").conversations() for text in texts_of(one))
    assert "<EMAIL_1>" in texts
    assert "already measured" in ctxbench(*words, cwd=out).stderr
    other = ctxbench(*words[:6], "-o", "r", cwd=out, code=2)
    assert "holds another run (it differs in recordings, redaction)" in other.stderr
    next((out / "r").rglob("steps/*.parquet")).unlink()
    assert (
        "to make it again: give its `ctxbench run` command again"
        in ctxbench("lab", "verify", "r", cwd=out, code=1).stderr
    )
    repair = ctxbench("lab", "verify", "r", "--repair", cwd=out, code=2)
    assert "give its `ctxbench run` command again" in repair.stderr
    ctxbench(*words, cwd=out)
    ctxbench("lab", "verify", "r", cwd=out)
