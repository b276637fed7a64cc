"""Secrets that are sent through options, headers, replies and errors are in no file and on no stream."""

import base64
import json
import string
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.harness.command import ctxbench
from tests.harness.models.server import Server, serving
from tests.harness.runs import recording

SUMMARY = "summary(threshold=8, every=8, language='en')"

FORMS: dict[str, Callable[[str], str]] = {
    "plain": lambda value: value,
    "quoted": lambda value: quote(value, safe=""),
    "JSON": lambda value: json.dumps(value)[1:-1],
    "hex": lambda value: value.encode().hex(),
    "base64": lambda value: base64.b64encode(value.encode()).decode().rstrip("="),
    "base64 of user and password": lambda value: base64.b64encode(b"user:" + value.encode()).decode().rstrip("="),
}
# What the server does with the value, which it has from the header: each way back into the program.
ACTS: dict[str, Callable[[str], list[str]]] = {
    "reply": lambda _: [],
    "rejects the key": lambda said: [f"status 401 Incorrect API key provided: {said}"],
    "refuses": lambda said: [f"status 400 bad request with Authorization: Bearer {said}"] * 9,
    "not found": lambda said: [f"status 404 no model for {said}"],
    "fails": lambda said: [f"error 500 <html>{said}</html>"] * 40,
    "no quota": lambda said: [f"status 429 insufficient_quota for {said}"],
    "redirects": lambda said: [f"redirect 307 http://user:{quote(said, safe='')}@127.0.0.1:9/v1?key={quote(said)}"],
    "unreadable": lambda said: [f"reply {json.dumps({'choices': said})}"] * 40,
}


def texts_in(folder: Path) -> str:
    """All that stands in the files of a folder: tables as JSON, all else as it is."""
    parts = []
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        parts.append(str(file.relative_to(folder)))
        if file.suffix == ".parquet":
            parts.append(json.dumps(pq.read_table(file).to_pylist(), default=str, ensure_ascii=False))
        parts.append(file.read_bytes().decode("utf-8", "replace"))
    return "\n".join(parts)


def assert_gone(value: str, *texts: str) -> None:
    """None of the texts has the value in any form; the middle is looked for, whose ends are the same in each."""
    for name, form in FORMS.items():
        for text in texts:
            assert form(value) not in text, (name, text[max(0, text.find(form(value)) - 200) :][:400])


# With characters enough that no file has them by chance.
KEYS = st.text(string.ascii_letters + string.digits + "+/=&%\"'\\ é-_", min_size=12, max_size=40).filter(
    lambda value: value.strip() == value and value.isprintable() and value.isascii() and len(set(value)) > 7
)


@pytest.mark.slow
@examples(30)
@given(value=KEYS, act=st.sampled_from(sorted(ACTS)), form=st.sampled_from(sorted(FORMS)))
def test_any_key_of_the_environment(value: str, act: str, form: str) -> None:
    """A key is in no run folder, cassette or message, in no form, whatever a server does with it."""
    with serving() as server:
        assert_stays(value, act, form, server)


@pytest.mark.parametrize(("act", "form"), [("reply", "plain"), ("fails", "base64 of user and password")])
def test_a_key_of_the_environment(act: str, form: str, server: Server) -> None:
    """A key that a server answers with, or has in an error, is in no file and on no stream."""
    assert_stays("a/b+c&d\"e'f g%h", act, form, server)


def assert_stays(value: str, act: str, form: str, server: Server) -> None:
    said = FORMS[form](value)
    server.text, server.acts = f"The user said {said}.", ACTS[act](said)
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        here = Path(folder)
        file = recording(here, conversations=1, turns=6)
        patch.setenv("OPENAI_API_KEY", value)
        patch.setenv("XDG_CACHE_HOME", str(here / "cache"))
        words = (
            "-s",
            SUMMARY,
            "--summariser",
            "openai/m(retries=0, api_key_env='OPENAI_API_KEY')",
            "--cassette",
            "c",
            "--report",
            "-o",
            "r",
        )
        done = ctxbench("run", file, *words, cwd=here, code=None)
        assert server.seen, "the server was not asked"
        assert any(value in sent for sent in server.seen[-1]["headers"].values())
        assert_gone(value, done.stdout, done.stderr, texts_in(here))


VALUE = "Tr0ub4dor3correct9horse"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--summariser", f"openai/x(api_base='http://user:{VALUE}@127.0.0.1:9/v1')"), 2),
        (("-s", f"nowhere.py:Mine(api_key='{VALUE}')"), 2),
        (("-s", f"none(password='{VALUE}')"), 2),
        ((f"https://user:{VALUE}@127.0.0.1:9/a.jsonl",), 2),
        ((f"https://127.0.0.1:9/a.jsonl?access_token={VALUE}",), 2),
        pytest.param(("--mlflow", "--tracking-uri", f"http://user:{VALUE}@127.0.0.1:9"), 2, marks=pytest.mark.slow),
    ],
    ids=["api base", "strategy", "parameter", "address", "token", "tracking"],
)
def test_a_secret_in_an_option(words: tuple[str, ...], code: int, tmp_path: Path) -> None:
    """A secret that is given on the command line is refused or hidden: it is in no message and no file."""
    file = recording(tmp_path, conversations=1, turns=2)
    done = ctxbench("run", file, *words, "-s", "none", "-o", "r", cwd=tmp_path, code=code)
    assert_gone(VALUE, done.stdout, done.stderr, texts_in(tmp_path))
    shown = ctxbench("config", "run", file, *words, cwd=tmp_path, code=None)
    assert_gone(VALUE, shown.stdout, shown.stderr)
