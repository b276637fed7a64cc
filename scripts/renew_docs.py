"""Write the tables of a run into the pages that show them: `scripts/renew_docs.py runs/standard` (`make readme`).

A page marks a table's place with `<!-- table: NAME -->` and `<!-- end -->`. Figures in sentences are for a person to
renew: the script prints those that the pages quote.

`docs/tables.json` says what the tables were written from: the recordings, and the baseline of `smoke`, which stands for
all code that the gate measures. `stale` compares it with what is here, so that CI need not run `standard`.

    scripts/renew_docs.py formats FOLDER    # of the sample recordings: the table of docs/formats.md (`make formats`)
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ctxbench import load
from ctxbench.harness.answers.store import answered
from ctxbench.harness.bill import MODELS
from ctxbench.harness.bill.requests import billed_models
from ctxbench.harness.claims.registry import read
from ctxbench.harness.folder.run import Run
from ctxbench.harness.models.local import NAME
from ctxbench.reports.claims import tables as claim_tables
from ctxbench.reports.html.sections import overview_section
from ctxbench.reports.profile import coverage_tables
from ctxbench.reports.render import markdown, percent
from ctxbench.reports.results import Results
from ctxbench.scenarios.coverage import compared
from ctxbench.scenarios.embedded import scenario
from ctxbench.scenarios.read import find
from ctxbench.scenarios.source import Problems

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/bench.md", "docs/quality.md", "docs/cost.md", "docs/claims.md", "docs/tiers.md")
FEW = ("window(max_tokens=8000)", "window(max_tokens=32000)", "summary(every=5)", "retrieval", "archive", "none")
ROWS = 8  # rows of the table of `make bench` that the README has
FORMATS = ROOT / "docs" / "formats.md"
WRITTEN_FROM, BASELINE = ROOT / "docs" / "tables.json", ROOT / "tests" / "baseline.smoke.json"
_PLACE = re.compile(r"(<!-- table: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


class Printed:
    """The figures of a run, as its commands print them."""

    def __init__(self, folder: Path) -> None:
        run, self.folder = load(folder), folder
        self.summary = run.summary(*MODELS)
        self.plan = run.manifest.plan
        self.report: dict[str, Any] = ctxbench("report", folder)
        self.answers = {of["answerer"]: of["strategies"] for of in reversed(self.report["answers"])}
        self.questions = questions(run.reader)
        parts = [
            printed("report", folder, "--print-only"),
            f"report: {folder}/report/report.html\n",
            printed("lab", "claims", folder, "--effort", "quick", "--brief"),
            printed("lab", "tiers", *["all(index='hnsw')"] * (find_spec("hnswlib") is not None)),
        ]
        stored = read(run.reader)
        assert stored is not None  # `lab claims` has just written them
        self.claims = stored.findings
        text = "".join(parts).replace(str(folder), "runs/standard")
        self.bench = [line.rstrip() for line in text.strip().splitlines()]


def main(folder: Path) -> None:
    """Renew the pages and the README's picture from a run."""
    measured = Printed(folder)
    for page in PAGES:
        path = ROOT / page
        text = _PLACE.sub(
            lambda match: match[1] + "\n".join(TABLES[match[2]](measured)) + "\n" + match[3], path.read_text()
        )
        path.write_text(text)
    digests = load(folder).reader.table("conversations").digest.astype(str)
    facts = {"recordings": sha256("\n".join(digests)), "baseline": sha256(BASELINE.read_text()), "tables": tables()}
    WRITTEN_FROM.write_text(json.dumps(facts, indent=2) + "\n")
    subprocess.run([sys.executable, "-m", "tests.judging", "--write"], check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    (ROOT / "docs" / "images" / "frontier.svg").write_bytes(picture(folder))
    report = measured.report
    bounds = {name: measured.answers["offline"][name]["correct"] for name in ("none", "last_turn", "evidence_only")}
    print({key: report[key] for key in ("conversations", "messages", "calls", "tokens")}, bounds)


def picture(folder: Path) -> bytes:
    """Return the README's picture: the frontier of a run."""
    run = load(folder).reader
    (chart,) = overview_section(Results(run, billed_models(run))).charts
    return chart.files()[".svg"]


def read_of(folder: Path) -> list[dict[str, Any]]:
    """Return what is read of a folder, a row for each recording (`ctxbench describe --coverage`)."""
    return [compared(batch, Problems()) for batch in find([folder], Problems())]


def with_formats(page: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return docs/formats.md with its table of what is read."""
    lines = [line for line in markdown(coverage_tables(rows)[:1]).splitlines() if line.startswith("|")]
    return _PLACE.sub(lambda place: "\n".join([place[1], *lines, "", place[3]]), page)


def sha256(text: str) -> str:
    """Return a digest of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def tables() -> dict[str, str]:
    """Map each table of the pages to the digest of its text."""
    places = (match for page in PAGES for match in _PLACE.finditer((ROOT / page).read_text()))
    return {match[2]: sha256(match[0]) for match in places}


def stale() -> Iterator[str]:
    """Yield in words why the tables are not those of the scenarios and strategies that are here."""
    facts = json.loads(WRITTEN_FROM.read_text())
    if facts["recordings"] != sha256("\n".join(conversation.digest() for conversation in scenario("standard"))):
        yield "the scenario `standard` has changed since the tables were written"
    if facts["baseline"] != sha256(BASELINE.read_text()):
        yield "the figures of `smoke` have changed since the tables were written"
    for name, digest in tables().items():
        if facts["tables"].get(name) != digest:
            yield f"the table {name} was not written by `make readme`"


def ctxbench(*command: object) -> Any:
    """Return what a command prints as JSON."""
    return json.loads(printed(*command, "--json"))


def printed(*command: object) -> str:
    """Return what a command prints on a terminal of 124 columns."""
    words = [str(Path(sys.executable).with_name("ctxbench")), *map(str, command)]
    environment = {**os.environ, "COLUMNS": "124"}
    return subprocess.run(words, check=True, capture_output=True, text=True, env=environment).stdout


def bench(measured: Printed) -> Iterator[str]:
    """Yield what `make bench` prints."""
    yield from ("```text", *measured.bench, "```")


def verdict(measured: Printed) -> Iterator[str]:
    """Yield the answer of `make bench` and the first rows of its table."""
    yield from ("```text", *shown(measured.bench), "```")


def shown(lines: Sequence[str]) -> list[str]:
    """Return of what `make bench` prints what the README has: the answer, and the first rows of the table."""
    answer = list(takewhile(lambda line: not re.match(r"[a-z ]+\S  ", line), lines))
    first = next(at for at, line in enumerate(lines) if line.startswith("strategy"))
    at = lines[first - 1].index("LRU-K")  # a column of dashes where none of the rows has a memory tier
    table = [line[: at - 2] + line[at + 5 :] for line in lines[first - 1 : first + 1 + ROWS]]
    return [*answer, "", *table]


def questions(run: Run) -> pd.DataFrame:
    """Return a row for each strategy and answerable question: what was right, found and recalled of it.

    `right` and `reader` are those of the recorded model and of the extractive baseline, NaN where nothing is graded.
    """
    keys = ["conversation", "number", "strategy"]
    by = {of.answerer: of.rows.astype(dict.fromkeys(keys[::2], str)) for of in answered(run).whole}
    rows = by[NAME][by[NAME].answerable][[*keys, "correct", "input_tokens"]]
    rows = rows.rename(columns={"correct": "right", "input_tokens": "tokens"})
    rows = rows.merge(by["offline"][[*keys, "correct"]].rename(columns={"correct": "reader"}), on=keys)
    probes = run.arrow("probes", [*keys, "answer", "evidence_state"]).to_pandas()
    probes["recalled"] = [
        np.mean(np.array(states) == "verbatim") if states is not None and len(states) else np.nan
        for states in probes.evidence_state
    ]
    probes = probes.rename(columns={"answer": "found"}).astype(dict.fromkeys(keys[::2], str))
    rows = rows.merge(probes[[*keys, "found", "recalled"]], on=keys)
    return rows.astype(dict.fromkeys(("right", "reader", "found"), float))


def measures(measured: Printed) -> Iterator[str]:
    """Yield how far three measures go with the right answers of the recorded model, over the strategies."""
    rows, bounds = measured.questions, ["last_turn", "evidence_only"]
    keys = ["conversation", "number"]
    # Of strategies whose prompts have changed since the model was asked too few are answered.
    answered = rows.right.notna().groupby(rows.strategy).mean()
    rows = rows[rows.strategy.isin(answered.index[answered >= 0.9 * answered["none"]])]
    every = rows.groupby(keys).right.transform(lambda right: right.notna().all())
    measures = rows[every].groupby("strategy")[["right", "found", "recalled", "reader"]].mean()
    fewer = measures.drop(bounds, errors="ignore")
    asked = f"{int(every.sum() / len(measures))} questions answered from all"
    yield from head(
        "Pearson with right answers", f"{len(measures)} strategies, {asked}", f"without the bounds, {len(fewer)}"
    )
    names = {"found": "answer in context", "recalled": "context recall", "reader": "the stand-in reader"}
    for key, name in names.items():
        yield row(name, *(f"{part.right.corr(part[key]):.3f}" for part in (measures, fewer)))


def lengths(measured: Printed) -> Iterator[str]:
    """Yield right answers by the length of the context, and how often the shorter of two that have the answer wins."""
    rows = measured.questions.dropna(subset=["right", "found"])
    rows = rows.drop_duplicates(["conversation", "number", "tokens", "right", "found"])
    ends = [0, 500, 2000, 4000, 8000, 16000, 33000]
    yield from head("tokens of the prompt", "right, answer found", "contexts", "right, not found", "contexts")
    for least, most in pairwise(ends):
        here = rows[rows.tokens.between(least, most, "right")]
        cells = [(here.right[here.found == found].mean(), int((here.found == found).sum())) for found in (1, 0)]
        shares = [cell for share, count in cells for cell in (percent(share) if count else "–", f"{count:,}")]
        yield row(f"{least + 1:,} to {most:,}", *shares)
    some = rows[rows.found == 1]
    both = some.merge(some, on=["conversation", "number"]).query("tokens_x < tokens_y and right_x != right_y")
    for least, most in ((1, 2), (2, 4), (4, 1000)):
        here = both[(both.tokens_y / both.tokens_x).between(least, most, "right")]
        ratio = f"{least} to {most} times" if most < 1000 else f"more than {least} times"
        about = f"of two contexts with the answer, one {ratio} as long: the shorter is right"
        yield row(about, percent(here.right_x.mean()), f"{len(here):,}", "", "")


def right_answers(measured: Printed) -> Iterator[str]:
    """Yield for each strategy the two bounds, and the right answers of the recorded model."""
    yield from head("strategy", "found", "reader, of whole", "right (95 %)", "pairs", "right under `none`", "abstained")
    for name, of in measured.answers[NAME].items():
        reader, ends = measured.answers["offline"][name], of["correct_interval"]
        found = percent(measured.summary.loc[name].answer_in_context) if name in measured.summary.index else "–"
        right, base, abstained = (percent(of[key]) for key in ("correct", "base", "abstained"))
        right += f" ({100 * ends['low']:.0f}–{100 * ends['high']:.0f})" if "low" in ends else ""
        yield row(f"`{name}`", found, percent(reader["of_whole"]), right, of["paired"], base, abstained)


def context_recall(measured: Printed) -> Iterator[str]:
    """Yield what becomes of the evidence, for some strategies."""
    metrics = ("context_recall", "evidence_partial", "evidence_summary", "answer_in_context", "evidence_density")
    yield from head("", "context recall", "in part", "summary", "answer in context", "evidence density")
    for name in FEW:
        yield row(f"`{name}`", *(percent(measured.summary.loc[name][metric]) for metric in metrics))


def cost_saved(measured: Printed) -> Iterator[str]:
    """Yield what strategies save of the bill under three providers."""
    yield from head("", "tokens saved, net", *MODELS)
    names = (*FEW[:2], "smart(window=32000)", "retrieval", "facts", "archive", "cache_marks")
    for name in names:
        figures = measured.summary.loc[name]
        yield row(
            f"`{name}`", *map(percent, (figures.net_saving, *(figures[f"cost_saving({model})"] for model in MODELS)))
        )


def claims(measured: Printed) -> Iterator[str]:
    """Yield the verdicts on the claims of which `make bench` prints the number."""
    yield from markdown(claim_tables(measured.claims)[:1]).strip().splitlines()


def ladder(measured: Printed) -> Iterator[str]:
    """Yield what each tier adds to those above it, at what cost and latency."""
    folder = measured.folder.with_name("ladder")
    rungs = [f"tiered(tiers={tiers}, working=8192, archive=131072)" for tiers in (1, 2, 3, 4)]
    printed("run", "standard", *(f"--strategy={each}" for each in ("none", *rungs)), "--out", folder, "--overwrite")
    model, times = MODELS[0], ("latency_p50", "latency_p99")
    shares = ("answer_in_context", "evidence_absent", f"cost_saving({model})", f"cache_hit_rate({model})")
    cells = ("answer in context", "evidence lost", "cost saved", "cache hit", "LRU-K hit", "latency p50", "latency p99")
    yield from head("", *cells)
    names = ("Focus", "with Working", "with Archive", "with RAG")
    for name, (_, of) in zip(names, load(folder).summary(model).iloc[1:].iterrows(), strict=True):
        hits = "–" if of.lru_k_hit_rate != of.lru_k_hit_rate else percent(of.lru_k_hit_rate)
        yield row(name, *(percent(of[key]) for key in shares), hits, *(f"{of[key]:,.0f} µs" for key in times))


TABLES: dict[str, Callable[[Printed], Iterator[str]]] = {
    "bench": bench,
    "verdict": verdict,
    "right-answers": right_answers,
    "measures": measures,
    "lengths": lengths,
    "context-recall": context_recall,
    "cost-saved": cost_saved,
    "claims": claims,
    "ladder": ladder,
}


def head(*cells: str) -> Sequence[str]:
    """Return a head whose columns are right-aligned but for the first."""
    return row(*cells), f"|---|{'---:|' * (len(cells) - 1)}"


def row(*cells: object) -> str:
    """Return a row of a table."""
    return "| " + " | ".join(map(str, cells)) + " |"


if __name__ == "__main__":
    if sys.argv[1] == "formats":
        FORMATS.write_text(with_formats(FORMATS.read_text(), read_of(Path(sys.argv[2]))))
    else:
        main(Path(sys.argv[1]))
