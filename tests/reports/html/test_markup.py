"""Markup stays text in whatever reaches a page, from a recording, a strategy, an answer model or a run folder."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import ctxbench
from ctxbench.cli import app
from ctxbench.harness.claims.claim import Finding
from ctxbench.harness.claims.registry import write as write_claims
from ctxbench.harness.claims.rows import ClaimSettings
from ctxbench.harness.engine.plan import execute
from ctxbench.harness.folder.files import file_digests, write_table
from ctxbench.harness.folder.run import load
from ctxbench.harness.folder.schema import LeftOutRecording
from ctxbench.harness.folder.store import part_files, read_manifest, write_manifest
from ctxbench.reports.html.folder import write
from ctxbench.reports.html.view import Site
from tests.harness.runs import plan
from tests.reports.html.builders import HOSTILE, recorded, results
from tests.reports.html.conftest import Opening

OUT = "\"'--></title></style></script></textarea></option></select></text></svg></table>"
STRATEGY = """
from dataclasses import dataclass
from ctxbench.scenarios.model import Message
from ctxbench.scenarios.view import Messages

@dataclass(frozen=True, slots=True)
class Hostile:
    def start(self, services):
        note = Messages.of((Message({text!r}, "system", {text!r}),))
        def view(context):
            if context.messages[1].text.startswith("fails"):
                raise ValueError({text!r})
            return context.sending(note + context.messages)
        return view
"""
# Columns of a run folder that no reader of the page decodes or looks up.
COLUMNS = {
    "conversations": ("source", "licence", "language"),
    "messages": ("model",),
    "probes": ("category", "failed"),
    "results": ("detail",),
    "answers": ("category", "missing", "answer", "support"),
    "grades": ("reason", "raw", "missing"),
}
ELEMENTS = """() => [...document.querySelectorAll("*")].filter((each) =>
    ["IMG", "BASE", "IFRAME", "OBJECT", "EMBED", "CIRCLE"].includes(each.tagName.toUpperCase()) || each.id === "bad"
    || (each.httpEquiv && each.httpEquiv !== "Content-Security-Policy")
    || [...each.attributes].some(({ name, value }) => name.startsWith("on") || /^\\s*javascript:/.test(value))
    || (each.tagName === "FORM" && each.hasAttribute("action") && each.getAttribute("action") !== "compare")
  ).map((each) => each.outerHTML.slice(0, 200))"""


def text(at: int) -> str:
    """All vectors, another one first for each number: some texts are cut."""
    return OUT + "".join(HOSTILE[at % 9 :] + HOSTILE[: at % 9])


def conversation(at: int, **more: Any) -> dict[str, Any]:
    one = recorded(f"talk {at} {text(at)}", [f"{text(at + turn)} Point {turn}." for turn in range(4)], **more)
    for number, message in enumerate(one["messages"]):
        message["id"] += text(number)
        message |= {"call": {"model": text(number)}} if message["role"] == "assistant" else {}
        for call in message.get("calls", ()):
            call["name"] = text(number)
    probe = {"id": text(1), "question": text(2), "answers": ["AB-1000", text(3)], "category": text(4)}
    one |= {"probes": [{**probe, "evidence": [one["messages"][1]["id"]]}], "licence": text(5), "language": text(6)}
    return one | {"tools": [{"name": text(7), "description": text(0)}], "meta": {text(1): text(2), "unit": text(at)}}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose recordings, strategies and answer model are hostile, and its folder's name and files too."""
    folder = tmp_path_factory.mktemp("markup")
    talks = [conversation(0), conversation(1)]
    talks.append(recorded("fails", [f"fails {text(3)}", "more"]))
    (folder / "some.jsonl").write_text("\n".join(map(json.dumps, talks)), encoding="utf-8")
    code = folder / "<img src=x onerror=window.bad=7>.py"
    code.write_text(STRATEGY.format(text=text(5)))
    run = folder / "<img src=x onerror=window.bad=8>"
    strategies = ("none", "summary(threshold=4)", "window(max_tokens=900)", f"'{code}:Hostile'")
    execute(plan(folder / "some.jsonl", strategies=strategies), run)
    prompts, replies = folder / "prompts.jsonl", folder / "replies.jsonl"
    answer = ["lab", "answer", str(run)]
    invoke([*answer, "--dump", str(prompts)])
    digests = [json.loads(line)["digest"] for line in prompts.read_text().splitlines()]
    lines = [json.dumps({"digest": digest, "reply": text(at)}) for at, digest in enumerate(digests)]
    replies.write_text("\n".join(lines))
    invoke([*answer, "--replies", str(replies), "--answerer", f"openai/{HOSTILE[1]}"])
    rewrite(run)
    finding = Finding(text(0), text(1), text(2), text(3), "holds", text(4), (), text(5))
    write_claims(load(run), [finding], ClaimSettings("", recordings=(text(6),)))
    return run


def invoke(words: list[str]) -> None:
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done


def rewrite(run: Path) -> None:
    """Write other texts into the tables and the manifest, with their digests, as a stranger may who sends a folder."""
    for table, columns in COLUMNS.items():
        for path in (run / table).rglob("*.parquet"):
            rows = pq.read_table(path)
            for name in columns:
                kind = rows.schema.field(name).type
                values = [None if value is None else text(at) for at, value in enumerate(rows[name].to_pylist())]
                at = rows.schema.get_field_index(name)
                rows = rows.set_column(at, rows.schema.field(name), pa.array(values, pa.string()).cast(kind))
            if table not in ("answers", "grades"):
                write_table(path, rows)
    manifest = read_manifest(run)
    hostile = msgspec.structs.replace(manifest.plan, names=(text(0),), form=text(1), summariser=text(2), window=text(3))
    names = [name for name in part_files(run) if not name.startswith("timings/")]
    manifest = msgspec.structs.replace(
        manifest,
        plan=hostile,
        versions={text(4): text(5)},
        strategy_names={manifest.plan.strategies[1]: text(6)},
        problems=(LeftOutRecording(text(0), 3, text(1), text(2), text(3)),),
        ignored=(text(4),),
        notes=(text(5),),
        digest=text(6),
        files=file_digests(run, names),
    )
    write_manifest(run, manifest)


def test_no_text_is_markup(hostile: Path, tmp_path: Path, opening: Opening) -> None:
    """No text becomes an element or runs, whatever is opened in the page: escaping alone holds, without the policy."""
    page = opening(write(results(load(hostile)), tmp_path), bypass_csp=True)
    address = page.url
    for tab in page.locator(".tabs a").all():
        tab.click()
    page.locator(".tabs a[data-tab=inspector]").click()
    page.locator("#status:not(:empty)").wait_for()
    for arm in range(4):
        page.locator("#strategy").select_option(index=arm)
        page.locator("#probe").select_option(index=1)
        page.locator("#history").focus()
        for key in ("Home", *["ArrowDown"] * 4):
            page.keyboard.press(key)
        page.locator("#message:not(:empty)").wait_for()
    page.evaluate("[...document.querySelectorAll('details')].forEach((each) => { each.open = true; })")
    assert "window.bad = 1" in page.locator("#message").inner_text()
    check(page, address)


def check(page: Any, address: str) -> None:
    assert page.evaluate(ELEMENTS) == []
    assert page.evaluate("window.bad === undefined")
    assert not set("\u202e\u2066\x07") & set(page.evaluate("document.body.textContent"))
    assert page.url.partition("#")[0] == address.partition("#")[0]


def test_other_pages(hostile: Path, tmp_path: Path, opening: Opening) -> None:
    """So are the pages of `ctxbench view`, and what a notebook shows."""
    site, opened = Site([hostile], ["gpt-5.6"]), ctxbench.load(hostile, model="gpt-5.6")
    pages = {
        "runs": site.respond("").body.decode(),
        "report": site.respond("report", f"run={HOSTILE[0]}").body.decode(),
        "compare": site.respond("compare", f"run={hostile}&against={hostile}").body.decode(),
        "notebook": f"<!DOCTYPE html>{opened._repr_html_()}{opened.verdict()._repr_html_()}",
    }
    for name, body in pages.items():
        (tmp_path / f"{name}.html").write_text(body, encoding="utf-8")
        page = opening(tmp_path / f"{name}.html", bypass_csp=True)
        check(page, page.url)


def test_the_policy_alone(page_of: Path, tmp_path: Path, browser: Any) -> None:
    """Where markup stands in the page as it is, the policy stops it: no script, request, form or base. It cannot stop
    a refresh."""
    raw = "".join(vector for vector in HOSTILE if "refresh" not in vector)
    report = page_of.read_text(encoding="utf-8")
    (tmp_path / "raw.html").write_text(report.replace("<main", f"{raw}<main", 1), encoding="utf-8")
    page, asked = browser.new_page(), list[str]()
    page.on("requestfinished", lambda request: asked.append(request.url))
    address = (tmp_path / "raw.html").resolve().as_uri()
    page.goto(address)
    page.evaluate(
        "document.querySelector('form[action]').submit(); document.querySelector('a[href^=javascript]').click()"
    )
    page.wait_for_timeout(200)
    assert page.evaluate("[typeof window.bad, document.baseURI]") == ["object", page.url]  # the elements of that id
    assert (page.url.partition("#")[0], set(asked)) == (address, {address})
    page.close()
