"""Each case in which people were told something wrong: what was said, what is right, and what is said now.

`python -m tests.judging` prints the table, and with `--write` puts it into docs/judging.md. `make test` runs every
case: those of the gate in tests/harness/compare/test_mutations.py, the others in tests/test_judging.py.
"""

import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from ctxbench.cli.progress import ProgressCounts
from ctxbench.harness.audit import aftermaths, replayed_without
from ctxbench.harness.bill import OWN_MODELS
from ctxbench.harness.bill.requests import billed_models
from ctxbench.harness.engine.plan import Plan, RunInputs, execute
from ctxbench.harness.folder.run import load
from ctxbench.metrics.statistics.comparison import Margin, Pairs, difference, judge
from ctxbench.metrics.statistics.intervals import Ends
from ctxbench.metrics.value import Missing
from ctxbench.reports.audit import Audit, Spared, audit_table
from ctxbench.reports.results import Results
from ctxbench.reports.verdict import RunVerdict, quality, verdict
from ctxbench.reports.verdict_text import answer, choices_table, headline, here, how_sure, how_to_have, in_words, tags
from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.model import RECORDED
from ctxbench.strategies import retrieval
from ctxbench.strategies.archive import Archive
from ctxbench.strategies.cache_marks import CacheMarks
from ctxbench.strategies.window import Window
from tests.metrics.statistics.simulations import rate
from tests.reports.html.builders import nine, ran, recorded, results, usual
from tests.reports.test_verdict import by_hand

PAGE = Path(__file__).parents[1] / "docs/judging.md"
_PLACE = re.compile(r"(<!-- judging -->\n).*?(<!-- end -->)", re.DOTALL)
Said = tuple[str, bool]
"""The text that is printed today, and whether it is right."""


class Case(NamedTuple):
    """A case of what people are told."""

    name: str
    said: str
    right: str
    now: Callable[[Any], Said]
    """Function of `Made`; of a case of the gate, of the project that the gate guards."""


class Made:
    """The runs that several cases share; each is made when it is first used."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def nine(self) -> RunVerdict:
        return verdict(Results(nine(self.folder / "nine"), ["claude-sonnet-5"]))


def _relative(made: Made) -> Said:
    change = made.nine.cost_change("retrieval")
    cost = made.nine._sums.cost
    each = cost.retrieval / cost["none"] - 1
    assert isinstance(change.shown, Missing)
    assert isinstance(change.across, Ends)
    text = f"{change.shown.detail}; in single conversations {in_words(change.across)}"
    return text, change.across == pytest.approx((each.min(), each.max()))


def _happened(made: Made) -> Said:
    cost, lines = made.nine._sums.cost, dict(answer(made.nine).rows)
    cheaper = f"cheaper in {(cost.retrieval < cost['none']).sum()} of 9 conversations"
    text = f"{here(made.nine, 'retrieval')}; {lines['largest']}"
    return text, cheaper in text and lines["largest"].startswith("one conversation, big: ")


def _one_of_nine(_: Made) -> Said:
    found = by_hand({"none": [1.0] * 9, "recorded": [*[1.0] * 8, 0.69]}, {"none": [0.9] * 9, "recorded": [0.9] * 9})
    across = found.cost_change("recorded").across
    assert isinstance(across, Ends)
    return how_sure(found, "recorded"), across == pytest.approx((-0.31, 0))


def _count(_: Made) -> Said:
    added = np.array([0.0] * 20 + [5_000, 400, 0, 90_000, 700, 2_000, 12_000, 800, 40, 6_000])
    one, both = np.ones(30), (np.zeros(30), added)
    found = difference(Pairs("total", *(np.column_stack([side, one]) for side in both)))
    ends = found.shown if isinstance(found.shown, Ends) else found.across
    assert isinstance(ends, Ends)
    of = "" if isinstance(found.shown, Ends) else ", in single conversations"
    return f"{added.sum():+,.0f} ({ends.low:+,.0f} to {ends.high:+,.0f}{of})", 0 <= ends.low <= ends.high


def _unchanged(_: Made) -> Said:
    eight = difference(Pairs("ratio", *[np.ones((8, 2))] * 2))
    least = next(
        size
        for size in range(8, 99)
        if judge(difference(Pairs("ratio", *[np.ones((size, 2))] * 2)), Margin(0.05), "higher").word == "same"
    )
    assert isinstance(eight.tested, Ends)
    text = f"up to {-100 * eight.tested.low:.0f} points may be lost; the same within 5 points from {least} on"
    return text, (round(eight.tested.low, 3), least) == (-0.312, 59)


def _dropped(_: Made) -> Said:
    rates = [rate("false same: 16 points lost", size, 100) for size in (2, 3, 5, 10)]
    return f'"same" in {" / ".join(f"{100 * share:.0f}" for share in rates)} % of samples', max(rates) <= 0.05


def _one_answer(made: Made) -> Said:
    found, rows = made.nine, {row[0]: row[1] for row in choices_table(made.nine).rows}
    places = {name: tags(found)[f"place/{name}"] for name in ("none", "last_turn", "retrieval")}
    text = f'"{headline(found)}"; last_turn is a {places["last_turn"]}; at 5 points: {rows["5 points (--lose)"]}'
    return text, places == {"none": "chosen", "last_turn": "bound", "retrieval": "doubtful"}


def _low_ceiling(made: Made) -> Said:
    found = results(usual(made.folder / "usual"))
    assert found.summary.answers is not None
    [graded] = found.summary.answers.figures
    shares = {"none": 0.303, "evidence_only": 0.25}
    changed = tuple(replace(of, correct=shares.get(of.strategy, 0.2)) for of in graded.strategies)
    found.summary.__dict__["answers"] = replace(found.summary.answers, figures=(replace(graded, strategies=changed),))
    name = quality(found).name
    return f"judged by {name}", name == "answer in context"


def _choices(_: Made) -> Said:
    costs = {"none": [1.80] * 48, "archive": [1.69] * 48, "retrieval": [0.755] * 48}
    found = by_hand(costs, {"none": [0.21] * 48, "archive": [0.21] * 48, "retrieval": [0.186] * 48}, wanted=1000)
    rows = [(row[0].removesuffix(" (--lose)"), row[1], row[3]) for row in choices_table(found).rows]
    text = "; ".join(f"{loss}: {name} ({saved})" for loss, name, saved in rows)
    return text, [name for _, name, _ in rows] == ["archive", "archive", "retrieval", "retrieval"]


def _what_it_is(_: Made) -> Said:
    text = how_to_have("retrieval")
    return text, "LangChain: " in text


def _billed(made: Made) -> Said:
    models, many = ("claude-sonnet-5", "gpt-4o", ""), []
    for model in models:
        many.append(recorded(model or "no model", ["one", "two"]))
        for message in many[-1]["messages"]:
            message.update({"call": {"model": model}} if model and message["role"] == "assistant" else {})
    run = ran(made.folder / "models", *many, strategies=("none", "cache_marks"))
    own = billed_models(run)[0]
    guessed = headline(verdict(Results(run, ["claude-sonnet-5"])))
    said = f'{own}, each under its own; "{guessed.partition("would cost; ")[2]}"'
    return said, own == OWN_MODELS and "a guess: they name no model" in guessed


def _audit(made: Made) -> Said:
    paths = tuple(str(path) for path in sessions(made.folder / "sessions"))
    execute(Plan(RunInputs(paths), ("none", RECORDED), probes=False, answers=False), made.folder / "audit")
    found = Results(load(made.folder / "audit"), billed_models(load(made.folder / "audit")))
    after = aftermaths(found.run)
    without = replayed_without(found.run, after, jobs=1, watcher=ProgressCounts())
    audit = Audit(Spared(found.run, found.models, without=without), after)
    title, again = audit_table(audit).title, sum(audit.own.again.values())
    calls = f"{again} of {int(audit.own.calls)} calls after it repeat earlier ones"
    return f'"{title}"; {calls}', (again, audit.own.calls, len(audit.own.lost)) == (100, 170, 3)


def _one_compaction(made: Made) -> Said:
    path = next(sessions(made.folder / "one session"))
    execute(Plan(RunInputs((str(path),)), ("none", RECORDED), probes=False, answers=False), made.folder / "one")
    run = load(made.folder / "one")
    title = audit_table(Audit(Results(run, billed_models(run)), aftermaths(run))).title
    return f'"{title}"', title.startswith("Not decided: ")


def sessions(folder: Path) -> Iterator[Path]:
    """Yield ten Claude Code sessions: 20 files are read, a compaction, 10 of them are read again, and 6 others."""
    folder.mkdir(parents=True)
    rules = "Contents of /repo/CLAUDE.md (project instructions):\n- Never push to main.\n- Use pnpm, not npm\n"
    rules = f"<system-reminder>\n{rules}- Always ask before creating files\n</system-reminder>"
    for k in range(10):
        rows = list[dict[str, Any]]()

        def add(kind: str, rows: list[dict[str, Any]] = rows, k: int = k, **more: Any) -> None:
            time = f"2026-10-0{1 + k % 9}T10:{(len(rows) + 1) * 15 // 60:02}:{(len(rows) + 1) * 15 % 60:02}.000Z"
            about = {"isSidechain": False, "userType": "external", "cwd": "/repo", "version": "2.1.0"}
            parent = rows[-1]["uuid"] if rows else None
            names = {"sessionId": f"session-{k}", "uuid": f"{k}-{len(rows)}", "parentUuid": parent}
            rows.append({"type": kind, "timestamp": time, **about, **names, **more})

        def user(*blocks: Any, add: Any = add, **more: Any) -> None:
            add("user", message={"role": "user", "content": blocks[0] if more else list(blocks)}, **more)

        def assistant(block: dict[str, Any], read: int, add: Any = add, rows: Any = rows, k: int = k) -> None:
            usage = {"input_tokens": 10, "cache_creation_input_tokens": 500, "cache_read_input_tokens": 2000 + read}
            about = {"id": f"msg_{k}_{len(rows)}", "type": "message", "role": "assistant", "content": [block]}
            about |= {"stop_reason": "tool_use" if block["type"] == "tool_use" else "end_turn"}
            usage |= {"output_tokens": 50}
            add("assistant", message={**about, "model": "claude-sonnet-4-5", "usage": usage}, requestId=f"r{len(rows)}")

        def read(files: Sequence[int], again: str = "", user: Any = user, say: Any = assistant, k: int = k) -> None:
            for file in files:
                name, path = f"tu_{k}_{again}{file}", f"/repo/src/file{k}_{file}.py"
                call = {"type": "tool_use", "id": name, "name": "Read", "input": {"file_path": path}}
                say(call, file * 600)
                text = f"def func{k}_{file}(): return 'CONST-{k}{file:03d}'\n" + "# pad line\n" * 300
                user({"type": "tool_result", "tool_use_id": name, "content": text})

        user({"type": "text", "text": rules}, {"type": "text", "text": f"Refactor module M-{k:02d}."})
        read(range(20))
        assistant({"type": "text", "text": "All files read."}, 13_000)
        about = {"trigger": "auto", "preTokens": 30_000}
        add("system", subtype="compact_boundary", content="Conversation compacted", compactMetadata=about)
        summary = f"Summary: module M-{k:02d} is being refactored; 20 files were read."
        start = "This session is being continued from a previous conversation."
        user(f"{start} {summary}", isCompactSummary=True, isVisibleInTranscriptOnly=True)
        user({"type": "text", "text": "Continue with the refactoring."})
        read([*range(10), *range(20, 26)], "again ")
        done = f"Done. CONST-{k}000 is used by func{k}_3 in /repo/src/file{k}_3.py."
        assistant({"type": "text", "text": done}, 6_000)
        (path := folder / f"session-{k}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        yield path


OTHERS: Mapping[str, Sequence[Case]] = {
    "Intervals": (
        Case(
            "9 conversations, one 82 % of the bill: `retrieval`",
            "saves 15.3 % (−371.9 to 100.0 %)",
            "the range over conversations, no interval",
            _relative,
        ),
        Case(
            "the same: what happened, and who dominates",
            "one figure for what happened and what to expect",
            "exact, in how many it got cheaper, and without the largest",
            _happened,
        ),
        Case(
            "`recorded`: saves 0 in eight of nine, 31 % in one",
            "−88.4 to 100.0 %",
            "within 0 and 31 %",
            _one_of_nine,
        ),
        Case("`compare`: tokens added", "−1,442,271 to +2,193,277", "a count is not negative", _count),
        Case(
            "8 conversations, a question each, no answer changed",
            "at most 5 points worse in 100.0 % of resamples",
            "up to 31 points (95 %); 5 points need 59",
            _unchanged,
        ),
        Case(
            "16 points lost, at n = 2 / 3 / 5 / 10",
            '"same" in 68 / 59 / 39 / 17 % of samples',
            "at most 5 %",
            _dropped,
        ),
    ),
    "Verdict": (
        Case(
            "one screen",
            '"Keep the whole history" above a green `last_turn`, and a third answer below',
            "one answer; a bound is not judged",
            _one_answer,
        ),
        Case("a ceiling of 25.0 % under the whole history's 30.3", "judged by it", "not used", _low_ceiling),
        Case(
            "the accepted loss",
            "archive saves 6 %, before `retrieval` (−58 % for −2.4 points)",
            "the choice at 0, 1, 5 and 10 points",
            _choices,
        ),
        Case("after a strategy's name", "nothing", "what it does, what to call", _what_it_is),
        Case(
            "recorded with several models, or none",
            "all billed under one, a guess in a footnote",
            "each by its own; a guess in the headline",
            _billed,
        ),
    ),
    "Audit": (
        Case(
            "ten sessions; after a compaction each reads 10 of 20 files again",
            '"Keep your agent\'s own compaction: saved 46.6 %, 6.3 % less cost"',
            "$1.80 without it, $2.63 with it; 100 of 170 calls repeat; 3 rules lost",
            _audit,
        ),
        Case("one compaction, in one session", "keep it, or change it", "it decides nothing", _one_compaction),
    ),
}


def _fails(answer: Any, name: str, metric: str) -> Said:
    """Return the headline of a gate's answer; it is right where that and the table name strategy and metric."""
    title = answer.tables[0].title
    is_named = re.search(rf"The gate FAILS: .*\b{name}\b", title)
    return title, bool(is_named and re.search(rf"^{re.escape(metric)} +{name}\b", str(answer), re.MULTILINE))


def takes_another(name: str, kind: Any, setting: str, factor: float, metric: str) -> Callable[[Any], Said]:
    """Return the case of code that takes another number than is written: what is written stays what it was."""

    def now(project: Any) -> Said:
        start = kind.start

        def mutated(self: Any, services: Any) -> Any:
            return start(replace(self, **{setting: int(getattr(self, setting) * factor)}), services)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kind, "start", mutated)
            answer = project.gate(name)
        assert not answer.decision.settings
        return _fails(answer, name, metric)

    return now


def _own_file(*change: str) -> Callable[[Any], Said]:
    def now(project: Any) -> Said:
        text = (project.folder / "my.py").read_text()
        project.mine(text.replace(*change))
        answer = project.gate("mine")
        project.mine(text)
        return (answer.tables[0].title, answer.passes) if "#" in change[1] else _fails(answer, "mine", "context recall")

    return now


def _another_chain(project: Any) -> Said:
    answer = project.gate("store", store="archive(threshold=2000)")
    assert answer.decision.settings["store"][1] == "archive(threshold=2000)"
    return _fails(answer, "store", "tokens sent")


def _flipped_bit(project: Any) -> Said:
    run = project.run("none")
    [damaged] = sorted((run.folder / "answers").rglob("*.parquet"))[:1]
    data = bytearray(damaged.read_bytes())
    data[len(data) // 2] ^= 1
    damaged.write_bytes(data)
    with pytest.raises(RunError) as error:
        load(run.folder) and run.write_baseline(project.folder / "damaged.json")
    text = re.sub(r"\S+/run\d+", "run", str(error.value)).partition(" (")[0]
    return f'error: "{text} …"', damaged.name in str(error.value)


GATE = (
    Case(
        "`window` budget × 0.8",
        '"The gate passes"',
        "fails, naming window",
        takes_another("window", Window, "max_tokens", 0.8, "context recall"),
    ),
    Case(
        "recall limit 10 → 4",
        'context recall "cannot tell"',
        "fails",
        takes_another("recall", retrieval.Retrieval, "limit", 0.4, "context recall"),
    ),
    Case(
        "archive threshold × 2",
        'tokens "cannot tell"',
        "fails",
        takes_another("store", Archive, "threshold", 2, "tokens sent"),
    ),
    Case(
        "`cache_marks` minimum × 4",
        'cost "cannot tell"',
        "fails",
        takes_another("marks", CacheMarks, "min_tokens", 4, "cost"),
    ),
    Case("a comment in one's own file", '"Lost …, New …"', "passes", _own_file("def mine", "# a comment\ndef mine")),
    Case("turns − 1 in one's own file", "only `none` is compared", "fails, naming it", _own_file("turns=3", "turns=2")),
    Case("`archive | cache_marks` → `archive(threshold=2000)`", '"Lost 1, New 1"', "compared", _another_chain),
    Case("a flipped bit in the answers, then `gate --update`", "a baseline without answers", "an error", _flipped_bit),
)


def row(case: Case, now: Said) -> str:
    """Return a line of the table; the page has it as it is."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in (case.name, case.said, case.right, now[0])) + " |"


def table() -> str:
    """Return the table of all cases as Markdown."""
    from tests.harness.compare.test_mutations import Project

    lines = ["| case | was said | is right | now |", "|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("CTXBENCH_CACHE", "off")  # the changes that are planted are no file's
        made = Made(Path(folder))
        (guarded := Path(folder) / "project").mkdir()
        project = Project(guarded)
        for case in (*OTHERS["Intervals"], *OTHERS["Verdict"], *GATE, *OTHERS["Audit"]):
            now = case.now(project if case in GATE else made)
            lines.append(row(case, now) + " WRONG" * (not now[1]))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    printed = table()
    print(printed)
    if "--write" in sys.argv:
        PAGE.write_text(_PLACE.sub(lambda place: place[1] + printed + place[2], PAGE.read_text()))
