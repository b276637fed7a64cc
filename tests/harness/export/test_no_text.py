"""`--no-text`: nothing that was said in a recording is in what is written or served, however it is packed there."""

import json
import re
import zlib
from base64 import b64decode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ctxbench
from ctxbench.reports.html.view import Site
from ctxbench.scenarios.chat import decoded_object
from ctxbench.scenarios.model import Conversation
from tests.harness.command import ctxbench as command

GRAM, SHORTEST = 28, 9
"""Characters of any text that are searched for, and those of a shorter one that is searched for as a word."""
STRATEGIES = ("none", "summary(every=2)", "archive", "quotes.py:Quotes")
SECRET = "my secret role is of no use to anybody"
Search = Callable[[bytes], set[str]]
QUOTES = """
from dataclasses import dataclass

@dataclass(frozen=True)
class Quotes:
    \"\"\"Fails with the newest message in its error, in conversations in Chinese.\"\"\"

    def start(self, services):
        def view(context):
            if "zh" in services.conversation:
                raise ValueError(f"cannot read {context.messages[-1].text}")
            return context
        return view
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with questions, summaries, archived results, an error that quotes, and a record that cannot be read."""
    folder = tmp_path_factory.mktemp("quiet")
    (folder / "quotes.py").write_text(QUOTES)
    broken = {"schema_version": "ATIF-v1.6", "agent": {}, "steps": [{"step_id": 1, "source": SECRET}]}
    (folder / "broken.jsonl").write_text(json.dumps(broken))
    strategies = [word for name in STRATEGIES for word in ("-s", name)]
    command("run", "questions", "broken.jsonl", *strategies, "-o", "run", cwd=folder)
    return folder / "run"


def values(value: Any) -> Iterator[str]:
    """Every text in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from values(inner)


def said(conversation: Conversation) -> Iterator[str]:
    """Every text of a recording: messages, arguments of calls, questions and accepted answers, facts, compactions."""
    for message in conversation.messages:
        yield from (message.text, message.thinking)
        for call in message.calls:
            yield from values(decoded_object(call.arguments) or call.arguments)
    for probe in conversation.probes:
        yield from (probe.question, *probe.answers)
    yield from (fact.text for fact in conversation.facts)
    yield from (compaction.summary for compaction in conversation.compactions)


def unpacked(content: bytes) -> str:
    """A file with whatever is packed in it: the page has its conversations and charts deflated, in base64."""
    text = content.decode("utf-8", "ignore")
    parts = [text]
    for packed in re.findall(r"[A-Za-z0-9+/]{60,}={0,2}", text):
        try:
            parts.append(zlib.decompress(b64decode(packed)).decode())
        except (ValueError, zlib.error):
            continue
    return " ".join("\n".join(parts).replace("\\n", " ").split())


@pytest.fixture(scope="module")
def search(run: Path) -> Search:
    """A function that returns what of the recordings' texts stands in what was written."""
    opened = ctxbench.load(run)
    names = {*opened.table("conversations").conversation, *opened.strategies}
    texts = {SECRET}
    for conversation in opened.conversations():
        names |= {tool.name for tool in conversation.tools} | {probe.category for probe in conversation.probes}
        texts |= {" ".join(text.split()) for text in said(conversation)}
    grams = {text[at : at + GRAM] for text in texts for at in range(len(text) - GRAM + 1)}
    words = {text for text in texts if SHORTEST <= len(text) < GRAM and not any(text in name for name in names)}

    def search(written: bytes) -> set[str]:
        blob = unpacked(written)
        hits = {blob[at : at + GRAM] for at in range(len(blob) - GRAM + 1)} & grams
        return hits | words & set(re.findall(r"[\w.-]+", blob))

    return search


def report_files(run: Path, *options: str) -> bytes:
    command("report", run, "--out", "out", *options, cwd=run.parent)
    return b"\n".join(path.read_bytes() for path in sorted((run.parent / "out").rglob("*")) if path.is_file())


def test_the_search_finds_what_a_report_shows(run: Path, search: Search) -> None:
    """With its texts, the report has those of the recordings, of the error and of the record: the search is no sham."""
    hits = search(report_files(run))
    assert len(hits) > 5_000
    assert any(SECRET[:GRAM] in hit for hit in hits)


def test_report(run: Path, search: Search) -> None:
    """Not in the page with its inspector, in Markdown or CSV, nor on the terminal."""
    written = report_files(run, "--no-text")
    assert b"left out by --no-text" in written
    assert search(written) == set()
    for shown in (["--json"], ["--all"], ["--markdown", "-"]):
        printed = command("report", run, "--no-text", *shown, cwd=run.parent).stdout
        assert search(printed.encode()) == set()


def test_view(run: Path, search: Search) -> None:
    """Nor on the pages that are served."""
    site = Site([run], text=False)
    for path in ("", "report", "compare"):
        page = site.respond(path, f"run={run}&against={run}")
        assert page.status == 200
        assert search(page.body) == set()


@pytest.mark.slow
def test_trackers(run: Path, search: Search, tmp_path: Path) -> None:
    """Nor in any file of the trackers, the report that MLflow keeps included."""
    pytest.importorskip("mlflow")
    pytest.importorskip("wandb")
    command("export", "mlflow", run, "--no-text", "--tracking-uri", f"sqlite:///{tmp_path}/m.db", cwd=tmp_path)
    assert [path for folder in (run.parent, tmp_path) for path in folder.rglob("report.html")]
    command("export", "wandb", run, "--no-text", cwd=tmp_path)
    for folder in (tmp_path, run.parent / "wandb"):
        for path in folder.rglob("*"):
            assert not path.is_file() or search(path.read_bytes()) == set()


def test_prometheus(run: Path, search: Search) -> None:
    """Prometheus gets none in any case."""
    pytest.importorskip("prometheus_client")
    assert search(command("export", "prometheus", run, cwd=run.parent).stdout.encode()) == set()
