"""A provider that misbehaves in every way we know of: no trace, no lost reply, no money counted wrong."""

from __future__ import annotations

import json
import random
import re
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ctxbench.harness.engine.plan import Plan, RunInputs, execute
from tests.attacks import Outcome, outcome
from tests.harness.answers.test_answer_command import conversation
from tests.harness.command import ctxbench, said
from tests.harness.models.server import Server, serving

LIMIT = 0.05
"""Dollars that the attacked command may spend."""


def reply(**message: Any) -> str:
    """Return the act of a good reply in which parts of the message are other ones."""
    return "reply " + json.dumps(completion(choices=[choice(message=said_by_model(**message))]))


def changed(**fields: Any) -> str:
    """Return the act of a good reply in which fields are other ones."""
    return "reply " + json.dumps(completion(**fields))


def said_by_model(**message: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": "9680", **message}


def choice(**fields: Any) -> dict[str, Any]:
    return {"index": 0, "message": said_by_model(), "finish_reason": "stop", **fields}


def completion(**fields: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": 900, "completion_tokens": 9, "total_tokens": 909}
    whole = {"id": "c", "object": "chat.completion", "created": 1, "model": "gpt-4o-mini", "choices": [choice()]}
    return {**whole, "usage": usage, **fields}


def usage(**counts: Any) -> str:
    return changed(usage={"prompt_tokens": 900, "completion_tokens": 9, "total_tokens": 909, **counts})


def calling(name: Any, arguments: Any) -> str:
    called = {"id": "t1", "type": "function", "function": {"name": name, "arguments": arguments}}
    return reply(content=None, tool_calls=[called])


FAULTS = (
    *(
        f"status {code}"
        for code in (400, 401, 402, 403, 404, 408, 409, 413, 418, 422, 425, 429, 500, 502, 503, 504, 529)
    ),
    "status 400 context_length_exceeded",
    "status 429 You exceeded your current quota (insufficient_quota)",
    *(f"wait {after}" for after in ("0", "-5", "nan", "inf", "1e9", "soon", "Wed, 21 Oct 2015 07:28:00 GMT")),
    "hang",
    "cut",
    "truncated",
    "choices",
    "html",
    "plain",
    "drip",
    "close",
    *(
        f"reply {text}"
        for text in ("", "null", "[]", "{}", "nothing", '{"choices": null}', '{"error": {}}', "\ufeff{}")
    ),
    "reply " + "[" * 5000,
    reply(content=None),
    reply(content=""),
    reply(content="half \ud800 of a pair \udfff"),
    reply(content="\x1b[2J\x07\u202e\0"),
    reply(content=[{"type": "text", "text": "9680"}]),
    reply(content=42),
    reply(content="9680 " * 200_000),
    reply(content=None, refusal="I can't help."),
    reply(role="user"),
    calling("load", "{"),
    calling("load", '{"id": 1e999}'),
    calling("\ud800", "{}"),
    calling(None, None),
    calling("rm -rf /", '{"path": "/"}'),
    changed(model="another-model"),
    changed(choices=[choice(finish_reason="length")]),
    changed(choices=[choice(finish_reason="content_filter")]),
    changed(choices=[choice(finish_reason=None)]),
    changed(choices=[{}]),
    changed(choices=[choice(message=None)]),
    changed(usage=None),
    usage(prompt_tokens=-900),
    usage(completion_tokens=-(10**12)),
    usage(prompt_tokens=2**60),
    usage(completion_tokens=1e300),
    usage(prompt_tokens="many"),
    usage(prompt_tokens_details={"cached_tokens": 10**9}),
)


def faults(seed: int, tries: int) -> Outcome:
    """Answer and grade a run by a model whose server fails at random; then let it behave and go on."""
    chance, lost, tried = random.Random(seed), [], 0
    with TemporaryDirectory() as name, serving() as server:
        folder = Path(name)
        (folder / "talks.jsonl").write_bytes(conversation("a").to_json() + b"\n")
        strategies = ("none", "archive(threshold=500, fresh=False, language='en')")
        execute(Plan(RunInputs((str(folder / "talks.jsonl"),)), strategies, answers=False), folder / "made")
        server.text = "9680"
        while tried < tries:
            shutil.copytree(folder / "made", folder / "run")
            acts = [chance.choice(FAULTS) for _ in range(min(8, tries - tried))]
            tried += len(acts)
            lost += [f"{what} after {acts}" for what in _answered(folder, server, acts)]
            shutil.rmtree(folder / "run")
            for path in folder.glob("cassette*"):
                path.unlink()
    return outcome(tried, lost)


def _answered(folder: Path, server: Server, acts: list[str]) -> list[str]:
    """Return what the two commands did wrong: under faults, and when all is asked again after them."""
    words: tuple[object, ...] = ("lab", "answer", "run", "-a", "openai/gpt-4o-mini", "-y", "--cassette", "cassette")
    words += ("--api-base", server.url, "--timeout", 1, "--retries", 1, "--spend-limit", LIMIT)
    server.acts = list(acts)
    wrong = []
    try:
        done = ctxbench(*words, cwd=folder, code=None)
        server.acts.clear()
        spent = _spent(said(done.stderr))
        if done.returncode not in (0, 2):
            wrong.append(f"exit code {done.returncode}")
        if not 0 <= spent <= LIMIT:
            wrong.append(f"${spent} spent of ${LIMIT}")
        ctxbench(*words, "--overwrite", cwd=folder)
    except AssertionError as error:
        wrong.append(str(error).strip()[-300:])
    return wrong


def _spent(lines: list[str]) -> float:
    found = [re.search(r"models: [\d,]+ calls?, \$([-\d.e]+)", line) for line in lines]
    return sum(float(match[1]) for match in found if match)
