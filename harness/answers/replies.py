"""Replies that were made elsewhere to the prompts of a run: by a batch API, a GPU, a cluster; some come with ctxbench.

A prompt is the one text that a model without tools is sent (`chat.TextForm`). It is known by the SHA-256 of its text.

    {"digest": "9f86d081…", "text": "Below is a conversation …", "tokens": 1812}    a line of prompts (`dump`)
    {"digest": "9f86d081…", "reply": "10 minutes", "tokens": 1790}                  a line of replies; its own count
    {"digest": "60303ae2…", "reply": null, "missing": "was not asked: …"}
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import zstandard

from ctxbench.metrics.grading.rules import RulesGrader
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.errors import SetupError
from ctxbench.scenarios.model import Conversation

from .. import cache
from ..folder.files import placed
from ..folder.run import Run
from ..folder.store import read_conversations
from ..models import Models
from ..models.local import NAME
from .answer import Answer, Answerer, Offline, Part, Question, Rows, RunProbes, asked_shards, pair_of
from .chat import TEXT_PROMPT, TextForm, cleaned
from .store import digest_of, shards

SHIPPED = Path(__file__).parent / "data" / "standard.jsonl.zst"
"""Replies of Qwen2.5-Coder-1.5B to all questions of `standard`: one round, no tools, at most 64 tokens."""
NOT_RECORDED = Missing("undefined", "not recorded: this prompt is new, or has changed since the model was asked")


class ReplyLine(msgspec.Struct, omit_defaults=True):
    """The reply to a prompt."""

    digest: str
    reply: str | msgspec.UnsetType | None = msgspec.UNSET
    missing: str = ""  # why there is no reply
    tokens: int = 0  # tokens of the prompt, by the model's own count


def prompt_of(question: Question) -> str:
    """Return the one text that asks a question, without any tool."""
    return TextForm(question).text(silent=True)


def digest(text: str) -> str:
    """Return the name of a prompt."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass
class Replies:
    """An answer model whose replies are in a file."""

    name: str
    lines: Mapping[str, ReplyLine]  # by the digest of the prompt
    identity: str
    unknown: Missing  # the answer to a prompt that the file does not have
    cost: float | None = None  # US dollars of a reply; None = not known
    calls_tools: bool = False

    def answers(self, questions: Sequence[Question]) -> list[Answer]:
        """Return the reply to each question; Missing where the file has none."""
        return [self._answer(prompt_of(question), question.tokens) for question in questions]

    def _answer(self, text: str, tokens: int) -> Answer:
        line = self.lines.get(digest(text))
        if line is None:
            return Answer(self.unknown)
        if not (isinstance(line.reply, str) and line.reply.strip()):
            return Answer(Missing("unusable", line.missing or "the reply is empty"), input_tokens=line.tokens)
        return Answer(cleaned(line.reply), "", 1, line.tokens or tokens, cost=self.cost)


def read_replies(file: Path, name: str) -> Replies:
    """Read replies, plain or .zst; of two to one prompt the later counts. Raises SetupError for any other line."""
    lines, number = dict[str, ReplyLine](), 0
    try:
        data = file.read_bytes()
        for text in (zstandard.decompress(data) if file.suffix == ".zst" else data).splitlines():
            number += 1
            if text.strip():
                line = msgspec.json.decode(text, type=ReplyLine)
                if line.reply is msgspec.UNSET and not line.missing:
                    what = 'has no "reply": a line of --dump is a prompt, which a model has to answer first'
                    raise SetupError(f"{file}:{number}: {what}")
                lines[line.digest] = line
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SetupError(f'{file}:{number}: is no reply, as {{"digest": …, "reply": …}}: {error}') from None
    except (OSError, zstandard.ZstdError) as error:
        raise SetupError(f"{file}: {getattr(error, 'strerror', None) or error}") from None
    if not lines:
        raise SetupError(f'{file}: has no reply: each line is {{"digest": …, "reply": …}}')
    # Asked for again by the same command, when the file has it.
    unknown = Missing("failed", f"{file.name} has no reply to its prompt")
    return Replies(name, lines, digest_of("replies", TEXT_PROMPT, data), unknown)


@functools.cache
def shipped() -> Replies:
    """Return the replies that come with ctxbench."""
    return replace(read_replies(SHIPPED, NAME), unknown=NOT_RECORDED, cost=0.0)


def check_replies(replies: Replies, run: Run, probes: RunProbes, file: Path) -> None:
    """Raise SetupError where the file has no reply to any prompt of a run."""
    if not any(digest(text) in replies.lines for text in _prompts(run, probes)):
        remedy = (
            "its prompts have changed, or it is another run: `ctxbench lab answer RUN --dump FILE` writes them anew"
        )
        raise SetupError(f"{file}: no reply of it answers a prompt of {run.folder}: {remedy}")


def answer_shard(
    folder: Path,
    shard: int,
    conversations: Sequence[Conversation],
    counter: TokenCounter,
    models: Models,
    keys: Mapping[tuple[str, str], bytes],
) -> None:
    """Answer a shard extractively and with the shipped replies, and grade by rules. Its other parts must be there.

    `keys` have a digest of what was sent for a conversation under a strategy, of those that the cache may know.
    """
    run, name = Run(folder, shards=(shard,)), f"{shard:05d}"
    if not shards(folder, name):
        return
    # Answers to made questions would take as long as all the asking.
    probes, store = RunProbes(run, models, recorded=True), cache.results()
    answerers: list[Answerer] = [Offline(counter), *[shipped()] * ("standard" in run.manifest.plan.names)]
    for answerer in answerers:
        known = {of: cache.key(of, answerer.name, answerer.identity) for of in dict.fromkeys(keys.values())}
        found = {of: data for of, key in known.items() if (data := store.get(key)) is not None}
        answers, grades = Rows(), Rows()
        for data in found.values():
            for rows, more in zip((answers, grades), msgspec.msgpack.decode(data), strict=True):
                rows += more
        part = Part(run, name, answerer, RulesGrader(), found=(answers, grades), conversations=conversations)
        part.make(probes)
        new: dict[bytes, tuple[Rows, Rows]] = {of: (Rows(), Rows()) for of in known if of not in found}
        for at, rows in enumerate(part.made):
            for row in rows:
                if (of := keys.get(pair_of(row))) in new:
                    new[of][at].append(row)
        store.put({known[of]: msgspec.msgpack.encode(rows) for of, rows in new.items()})


def dump(run: Run, probes: RunProbes, to: Path) -> tuple[int, int]:
    """Write each distinct prompt as a line. Return how many, and their tokens. Raises RunError if a run has none."""
    counter, known, tokens = TokenCounter(run.manifest.plan.encoding), set[str](), 0
    with placed(to) as draft, draft.open("wb") as file:
        for text in _prompts(run, probes):
            if (name := digest(text)) not in known:
                known.add(name)
                tokens += (size := counter.text(text))
                file.write(msgspec.json.encode({"digest": name, "text": text, "tokens": size}) + b"\n")
    return len(known), tokens


def _prompts(run: Run, probes: RunProbes) -> Iterator[str]:
    for shard in asked_shards(run):
        for conversation in read_conversations(run.folder / "recordings" / f"{shard}.jsonl.zst"):
            for strategy in probes.strategies(conversation):
                asked = probes.of(conversation, strategy).values()
                yield from (prompt_of(question) for question in asked if isinstance(question, Question))
