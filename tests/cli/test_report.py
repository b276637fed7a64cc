"""`ctxbench report`: what it takes, and what it says of which run it prints."""

import json
from pathlib import Path

import pandas as pd

from tests.harness.command import CTXBENCH, ctxbench, forked
from tests.harness.runs import bytes_of, recording


def test_one_form_at_a_time(tmp_path: Path) -> None:
    """JSON and Markdown at once is an error, wherever the Markdown is to go, and nothing is written."""
    for target in ("-", "r.md"):
        done = ctxbench("report", "r", "--json", "--markdown", target, cwd=tmp_path, code=2)
        assert done.stderr == "error: give --json or --markdown, not both\n"
    assert not list(tmp_path.iterdir())


def test_which_run_is_printed(tmp_path: Path) -> None:
    """A run that was not named, the newest that was not stopped, is named on standard error; no other is."""
    path = recording(tmp_path, conversations=1)
    ctxbench("run", path, "-s", "none", "-o", "runs/one", cwd=tmp_path)
    (tmp_path / "runs/two").mkdir()
    text = (tmp_path / "runs/one/manifest.json").read_text()
    (tmp_path / "runs/two/manifest.json").write_text(text.replace('"complete": true', '"complete": false'))
    for words in (("report", "--print-only"), ("report", "runs", "--print-only"), ("report", "--json"), ("show",)):
        assert ctxbench(*words, cwd=tmp_path).stderr == "runs/one: the newest run in runs\n"
    assert ctxbench("report", "runs/one", "--print-only", cwd=tmp_path).stderr == ""
    (tmp_path / "runs/one/report").mkdir()
    done = ctxbench("report", "runs/one/report", cwd=tmp_path, code=2)
    assert done.stderr == "error: runs/one/report: this is a part of the run runs/one: name the run itself\n"


def test_the_width_that_is_asked_for(tmp_path: Path) -> None:
    """Where standard output is no terminal, COLUMNS is kept to if it is set, and else no column is left out."""
    strategy = "layered | smart | session_summary | cache_marks"
    ctxbench("run", recording(tmp_path, conversations=1), "-s", strategy, "-s", "none", "-o", "r", cwd=tmp_path)

    def report(**environment: str) -> str:
        return forked("commands", [CTXBENCH, "report", "r", "--print-only", "--all"], tmp_path, environment).stdout

    assert max(map(len, report(COLUMNS="100").splitlines())) <= 100
    head, _, narrow = report(COLUMNS="70").partition("\nNo room for: ")
    assert narrow.startswith("cache hit, in view.\n")
    assert max(map(len, head.splitlines())) <= 70
    for environment in ({"COLUMNS": "200"}, {}, {"COLUMNS": ""}, {"COLUMNS": "0"}, {"COLUMNS": "wide"}):
        printed = report(**environment)
        assert "No room for" not in printed
        assert strategy in printed


def test_what_is_written(tmp_path: Path) -> None:
    """The tables are printed and the report is written, into the run or elsewhere; the run is as it was."""
    ctxbench("run", recording(tmp_path, conversations=2, turns=3), "-s", "none", "-o", "r", cwd=tmp_path)
    before = bytes_of(tmp_path / "r")
    done = ctxbench("report", "r", "--model", "gpt-5.6", cwd=tmp_path)
    assert done.stdout.startswith("\nNo verdict: there is one strategy: add others with --strategy\n")
    assert done.stdout.endswith("\nreport: r/report/report.html\n")
    page = (tmp_path / "r" / "report" / "report.html").read_text()
    assert "claude" not in page
    after = bytes_of(tmp_path / "r")
    # Beside the report there is what needs not be made again for the next one.
    new = {name for name in after.keys() - before.keys() if not name.startswith("report/")}
    assert all(name.startswith("bills/") for name in new)
    assert {name: after[name] for name in before} == before
    assert {path.name for path in (tmp_path / "r" / "report").iterdir()} == {"report.html", "report.md", "tables"}
    assert (ctxbench("run", tmp_path / "some.jsonl", "-s", "none", "-o", "r", cwd=tmp_path)).returncode == 0


def test_what_is_wrong_with_it(tmp_path: Path) -> None:
    """A model without a price, a file for a folder, a damaged part: a line each."""
    ctxbench("run", recording(tmp_path, conversations=1), "-s", "none", "-o", "r", cwd=tmp_path)
    assert "nobody/knows" in ctxbench("report", "r", "--model", "nobody/knows", cwd=tmp_path, code=2).stderr
    (tmp_path / "file").write_text("")
    said = ctxbench("report", "r", "--out", "file", cwd=tmp_path, code=2)
    assert "\n1 conversation, " in said.stdout
    assert said.stderr == "error: file: cannot be written: File exists: name another folder with --out\n"
    (part,) = (tmp_path / "r" / "recordings").glob("*")
    part.write_bytes(part.read_bytes()[:40])
    assert (
        "00000.jsonl.zst is not as it was written: give the command that made this run once more"
        in ctxbench("report", "r", cwd=tmp_path, code=2).stderr
    )


def test_prices_of_ones_own(tmp_path: Path) -> None:
    """A model that no list has is billed by the user's file, in the run and in its report as in `bill`."""
    recording(tmp_path, conversations=2)
    (tmp_path / "own.toml").write_text('[models."company/assistant"]\ninput = 2\noutput = 10\n')
    own = ("--model", "company/assistant")
    (tmp_path / "ctxbench.toml").write_text('prices = "own.toml"\n')
    words = ("run", "some.jsonl", "-s", "none", "-s", "last_turn", "--out", "now", "--answerer", "none")
    assert "company/other" in ctxbench(*words, "--model", "company/other", cwd=tmp_path, code=2).stderr
    assert not (tmp_path / "now").exists()
    shown = ctxbench(*words, *own, "--report", cwd=tmp_path).stdout
    assert "billed under company/assistant" in shown
    assert "ctxbench report now -m company/assistant" in shown
    row = json.loads(ctxbench("bill", "now", *own, "--json", cwd=tmp_path).stdout)["bills"][0]
    compared = json.loads(ctxbench("compare", "now", *own, "--json", cwd=tmp_path).stdout)["comparisons"]
    assert "cost(company/assistant)" in {each["metric"] for each in compared}
    verdict = json.loads(ctxbench("report", "now", *own, "--json", cwd=tmp_path).stdout)["verdict"]
    assert verdict["model"] == "company/assistant"
    table = pd.read_csv(tmp_path / "now" / "report" / "tables" / "bill.csv")
    assert table.set_index("strategy").cost[row["strategy"]] == row["cost"]
