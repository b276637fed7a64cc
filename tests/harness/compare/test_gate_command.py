"""`ctxbench compare`, `baseline` and `gate`, as a user runs them."""

import json
import os
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.harness.command import CTXBENCH, ctxbench, forked
from tests.harness.compare.builders import signed
from tests.harness.runs import recording

STRATEGIES = ("-s", "none", "-s", "window(max_tokens=400)")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of the same recordings, the second with a smaller window under another name, and a baseline of the
    first."""
    made = tmp_path_factory.mktemp("gate")
    path = recording(made, conversations=8, turns=6)
    ctxbench("run", path, *STRATEGIES, "-o", "one", cwd=made)
    ctxbench("run", path, *STRATEGIES, "-o", "two", cwd=made)
    ctxbench("run", path, "-s", "none", "-s", "window(max_tokens=300)", "-o", "other", cwd=made)
    ctxbench("gate", "one", "--update", "--baseline", "one.json", cwd=made)
    return made


def test_the_same_twice(folder: Path) -> None:
    """Two runs of the same plan are the same in everything, and the gate passes; its files say so too."""
    done = ctxbench("compare", "one", "two", cwd=folder)
    assert "two against one, in 8 pairs of conversations" in done.stdout
    assert "The same: no figure differs in any conversation." in done.stdout
    assert "cannot tell" not in done.stdout
    done = ctxbench("gate", "two", "--baseline", "one.json", "--junit", "same.xml", "--markdown", "same.md", cwd=folder)
    assert done.stdout.startswith("\nThe gate passes\n")
    assert (folder / "same.md").read_text().startswith("## The gate passes")
    suites = ElementTree.parse(folder / "same.xml").getroot()
    assert {each.get("name") for each in suites} == {"none", "window(max_tokens=400)"}
    assert all(each.get("failures") == each.get("errors") == "0" for each in suites)


def worse(folder: Path) -> Path:
    """The baseline, as if the window had sent a twentieth less in every conversation: now it sends more."""
    found = json.loads((folder / "one.json").read_text())
    column = found["figures"]["window(max_tokens=400)"]
    column["tokens_sent"] = [each / 1.05 for each in column["tokens_sent"]]
    file = folder / "less.json"
    file.write_text(signed(json.dumps(found)))
    return file


def test_a_regression(folder: Path) -> None:
    """Five per cent more tokens fail the gate: what, by how much, where it moved most, and where to look."""
    words = ("gate", "one", "--baseline", worse(folder), "--markdown", "fail.md", "--junit", "fail.xml")
    (folder / "fail.md").write_text("before\n")
    done = ctxbench(*words, cwd=folder, code=1)
    assert "The gate FAILS" in done.stdout
    assert "The gate FAILS: window(max_tokens=400) got worse in tokens sent" in done.stdout
    assert re.search(r"tokens sent +window\(max_tokens=400\) .*\+5.0 %.* in 8 of 8", done.stdout)
    assert "Look at the first: ctxbench show one c" in done.stdout
    assert f"ctxbench gate one --update --baseline {words[3]}" in done.stdout
    assert 'metrics."tokens_sent".each = ' in done.stdout
    assert max(len(line) for line in done.stdout.splitlines() if str(folder) not in line) <= 120
    assert "more: --all" not in ctxbench(*words[:4], "--all", cwd=folder, code=1).stdout
    text = (folder / "fail.md").read_text()
    assert text.startswith("## The gate FAILS")
    assert "| window(max\\_tokens=400)" in text or "| window(max_tokens=400) |" in text
    (failure,) = ElementTree.parse(folder / "fail.xml").getroot().findall(".//failure")
    assert "worse: +5.0 % (in 8 of 8)" in str(failure.get("message"))
    found = json.loads(ctxbench(*words[:4], "--json", cwd=folder, code=1).stdout)
    assert found["result"] == "fails"
    assert found["failing"] == [{"strategy": "window(max_tokens=400)", "metric": "tokens_sent"}]
    (row,) = [each for each in found["comparisons"] if each["verdict"] == "worse"]
    assert row["difference"] == pytest.approx(0.05)
    assert isinstance(row["moved"][0]["step"], int)


def test_a_regression_that_nobody_reads(folder: Path) -> None:
    """`gate … | head -1` fails as the gate does, so that a pipe in CI lets nothing pass."""
    reader, writer = os.pipe()
    os.close(reader)
    words = [CTXBENCH, "gate", "one", "--baseline", str(worse(folder))]
    assert forked("commands", words, folder, out=writer).returncode == 1
    os.close(writer)


def test_other_strategies(folder: Path) -> None:
    """A strategy that is not run any more fails the gate; a new one is named. Within a run, strategies are compared."""
    done = ctxbench("gate", "other", "--baseline", "one.json", cwd=folder, code=1)
    assert "Lost: 1 strategy (window(max_tokens=400)): not in other." in done.stdout
    assert "New: 1 strategy (window(max_tokens=300)): not in one.json." in done.stdout
    done = ctxbench("compare", "other", cwd=folder)
    assert "other, strategies against none, in 8 conversations" in done.stdout
    # Eight are too few to say what others would save, not what these did.
    assert re.search(r"tokens sent +window\(max_tokens=300\) .* 8/0 .* cannot tell", done.stdout)
    assert len(done.stdout.splitlines()) <= 60
    assert max(map(len, done.stdout.splitlines())) <= 120
    found = json.loads(ctxbench("compare", "other", "--metric", "saving", "--json", cwd=folder).stdout)
    (row,) = found["comparisons"]
    told = [row[key] for key in ("metric", "strategy", "against", "verdict")]
    assert told == ["saving", "window(max_tokens=300)", "none", "better"]


def test_names(folder: Path) -> None:
    """A strategy is compared by its name, whatever its settings are; two of one name, and two names of one, are
    errors; a table of names in ctxbench.toml says the same."""
    path = folder / "some.jsonl"
    ctxbench("run", path, "-s", "none", "-s", "ours=window(max_tokens=400)", "-o", "ours", cwd=folder)
    ctxbench("gate", "ours", "--update", "--baseline", "ours.json", "-m", "none", cwd=folder)
    again = ctxbench("gate", "ours", "--update", "--baseline", "ours.json", cwd=folder).stderr
    assert "without a bill, as this file was; this run names claude-sonnet-5, gpt-5.6, gemini" in again
    (folder / "named").mkdir()
    (folder / "named" / "ctxbench.toml").write_text('[strategies]\nnone = "none"\nours = "window(max_tokens=300)"\n')
    ctxbench("run", path, "-o", "../less", cwd=folder / "named")
    done = ctxbench("gate", "less", "--baseline", "ours.json", cwd=folder, code=1)
    assert "The gate FAILS: ours got worse in " in done.stdout
    assert "ours was `window(max_tokens=400)` and is `window(max_tokens=300)`." in done.stdout
    assert re.search(r"tokens sent +ours ", ctxbench("compare", "ours", "less", "-s", "ours", cwd=folder).stdout)
    said = ctxbench("run", path, "-s", "a=none", "-s", "a=last_turn", cwd=folder, code=2).stderr
    assert "a is the name of none and of last_turn: give each a name of its own" in said
    said = ctxbench("run", path, "-s", "a=none", "-s", "b=none", cwd=folder, code=2).stderr
    assert "none has two names, a and b: leave one out" in said
