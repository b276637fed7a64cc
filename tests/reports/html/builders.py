"""Runs for the tests of the report: small ones by hand, and one of nine conversations."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ctxbench.harness.engine.plan import execute
from ctxbench.harness.folder.run import Run, load
from ctxbench.reports.results import Results
from tests.harness.runs import plan

MODELS = ("claude-sonnet-5", "gpt-5.6")
STRATEGIES = (
    "none",
    "last_turn",
    "window(max_tokens=300)",
    "summary(threshold=4)",
    "archive(threshold=20, fresh=False)",
    "retrieval",
    "layered",
    "archive(threshold=20) | window(max_tokens=300) | cache_marks",
)


def recorded(name: str, texts: Iterable[str], **more: Any) -> dict[str, Any]:
    """A conversation of a user, an assistant and a tool in turn."""
    messages: list[dict[str, Any]] = [{"id": "s", "role": "system", "text": "You help."}]
    for at, text in enumerate(texts):
        call = {"id": f"c{at}", "name": "look", "arguments": json.dumps({"path": f"/srv/a{at}.py"})}
        messages += [
            {"id": f"u{at}", "role": "user", "text": f"{text} Order AB-{1000 + at}."},
            {"id": f"a{at}", "role": "assistant", "text": "", "calls": [call]},
            {"id": f"t{at}", "role": "tool", "text": f"AB-{1000 + at}: {text[:100]} " * 40, "answers": f"c{at}"},
            {"id": f"b{at}", "role": "assistant", "text": f"It is AB-{1000 + at}."},
        ]
    return {"ctxbench": "1", "id": name, "messages": messages, **more}


def ran(folder: Path, *conversations: dict[str, Any], strategies: tuple[str, ...] = STRATEGIES, **more: Any) -> Run:
    """A run on them."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(each, ensure_ascii=False) for each in conversations)
    (folder / "some.jsonl").write_text("\n".join(lines), encoding="utf-8")
    execute(plan(folder / "some.jsonl", strategies=strategies, **more), folder / "run")
    return load(folder / "run")


def results(run: Run) -> Results:
    return Results(run, MODELS)


def usual(folder: Path, conversations: int = 3, turns: int = 6) -> Run:
    """Conversations, the first of them with a question."""
    said = [[f"Point {turn} of talk {number}." for turn in range(turns)] for number in range(conversations)]
    made = [recorded(f"talk {number}", each) for number, each in enumerate(said)]
    made[0]["probes"] = [
        {"id": "q1", "question": "Which order was the first?", "answers": ["AB-1000"], "evidence": ["u0", "t0"]}
    ]
    return ran(folder, *made)


HOSTILE = (
    "<script>window.bad = 1</script>",
    "<img src=x onerror='window.bad = 2'>",
    "<svg onload='window.bad = 3'><circle r='9'/></svg>",
    "<meta http-equiv='refresh' content='0;url=data:,bad'>",
    "<a href='javascript:window.bad = 4' id='bad'>click</a>",
    "<base href='https://bad.invalid/'>",
    "<form action='https://bad.invalid/' id='bad'><input></form>",
    "<iframe srcdoc='<script>top.bad = 5</script>'></iframe><object data='data:text/html,bad'></object>",
    "|--|--| $x$ \\ _a_ **b** =1+1 {{ 7 * 7 }} \u202eevil\u2066 \x07",
)

NINE = ("none", "last_turn", "window(max_tokens=2000)", "summary(every=5)", "archive", "retrieval")


def nine(folder: Path) -> Run:
    """Nine conversations of one user, recorded with claude-sonnet-5: one is 82 % of the bill, and it alone gets cheaper
    by retrieval, which loses the others' cache."""
    made = []
    for number, turns in enumerate((84, *[10] * 8)):
        words = (f"word{at * 7919 % 4001}" for at in range(10**6))
        texts = [" ".join(next(words) for _ in range(90)) for _ in range(turns)]
        made.append(recorded("big" if not number else f"small {number}", texts))
        for message in made[-1]["messages"]:
            message.update({"call": {"model": "claude-sonnet-5"}} if message["role"] == "assistant" else {})
    return ran(folder, *made, strategies=NINE)
