"""A user's path through the command line, good input and bad."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ctxbench.cli import app
from ctxbench.cli.run import demo
from ctxbench.harness.folder.run import load
from ctxbench.scenarios.errors import UserError
from tests.harness.command import CTXBENCH, ctxbench, said, with_ctxbench
from tests.harness.runs import recording


def test_a_whole_path(tmp_path: Path) -> None:
    """Run, report, show and convert, each on what the one before made."""
    path = recording(tmp_path, conversations=3)
    ran = ctxbench("run", path, "-s", "none", "-s", "window(max_tokens=400)", "-o", "r", cwd=tmp_path)
    assert "3 conversations, 147 messages, 72 model calls, billed under claude-sonnet-5" in ran.stdout
    assert "window(max_tokens=400)" in ran.stdout
    assert "results: r/" in ran.stdout
    printed, _, written = ctxbench("report", "r", cwd=tmp_path).stdout.partition("\nreport: ")
    assert printed in ran.stdout
    assert (tmp_path / written.strip()).is_file()
    assert "written: r.md" in ctxbench("report", "r", "--markdown", "r.md", cwd=tmp_path).stderr
    assert (tmp_path / "r.md").read_text().startswith("## No recommendation: 3 conversations are too few")
    assert "c2" in ctxbench("show", "r", cwd=tmp_path).stdout
    shown = ctxbench("show", "r", "c1", "20", "-s", "window(max_tokens=400)", cwd=tmp_path).stdout
    assert "step 20 of 0 to 23" in shown
    assert {"same", "new", "dropped"} <= {line.split()[0] for line in shown.splitlines() if line.strip()}
    assert "3 conversations written" in ctxbench("convert", path, "--to", "again.jsonl", cwd=tmp_path).stderr
    assert (tmp_path / "again.jsonl").read_bytes().count(b"\n") == 3


def test_json_of_a_recording_with_usage(tmp_path: Path) -> None:
    """Where the provider's usage is recorded, `--json` has the error of our counter, worked by hand here.

    Ours: 4 + 1 + 3 = 8 for "hi", where the provider says 10. The growth by "yo" and "hi" is 10, where it says 20.
    """
    said = [("user", "hi", None), ("assistant", "yo", 10), ("user", "hi", None), ("assistant", "yo", 30)]
    messages: list[dict[str, object]] = []
    for at, (role, text, tokens) in enumerate(said):
        call = {"call": {"model": "gpt-4o", "usage": {"input": tokens}}} if tokens else {}
        messages.append({"id": f"m{at}", "role": role, "text": text, **call})
    (tmp_path / "u.jsonl").write_text(json.dumps({"ctxbench": "1", "id": "u", "messages": messages}))
    found = json.loads(ctxbench("run", "u.jsonl", "-s", "none", "-o", "r", "--json", cwd=tmp_path).stdout)
    [row] = found["counter_error"]
    assert (row["model"], row["published"], row["calls"]) == ("gpt-4o", "o200k_base", 2)
    assert row["total"] == pytest.approx((8 + 18) / (10 + 30) - 1)
    assert row["growth_p50"] == pytest.approx(-0.5)


def test_convert_keeps_what_is_there_until_it_has_something(tmp_path: Path) -> None:
    """An unreadable input does not empty the target, and `--strict` leaves no draft behind."""
    (tmp_path / "keep.jsonl").write_text("precious")
    ctxbench("convert", "nowhere", "--to", "keep.jsonl", cwd=tmp_path, code=2)
    assert (tmp_path / "keep.jsonl").read_text() == "precious"
    (tmp_path / "bad.jsonl").write_text('{"ctxbench": "1", "id": "x", "messages": [{"id": 1}]}')
    ctxbench("convert", "bad.jsonl", "--strict", "--to", "x.jsonl", cwd=tmp_path, code=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.jsonl", "keep.jsonl"]


DATA_LIBRARIES = {"pandas", "pyarrow", "litellm", "quicktok", "genai_prices"}


def alone(*words: str | Path, before: str = "", after: str, cwd: Path | None = None) -> None:
    """Run a command in a Python of its own, with statements before it and after it, which may assert."""
    code = (
        f"import sys; sys.argv = {['ctxbench', *map(str, words)]!r}\n"
        f"from ctxbench.cli import main, progress\n{before}\n"
        f"try: main()\nexcept SystemExit as end: assert not end.code, end.code\n{after}\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, cwd=cwd)


def test_a_list_imports_nothing_heavy() -> None:
    """`list` needs no data library, no tokenizer and no strategy, which would take most of its time."""
    heavy = DATA_LIBRARIES | {"numpy", "ctxbench.strategies.window"}
    alone("list", "strategies", after=f"assert not {heavy!r} & set(sys.modules)")


def test_a_short_quiet_run_imports_no_pandas(tmp_path: Path) -> None:
    """Nor reports, graders, or strategies that are not named; and the tables of the same run are printed after it."""
    words = ("run", recording(tmp_path, conversations=1), "-s", "none", "--probes", "none", "-o", "r")
    heavy = {"pandas", "ctxbench.reports.results", "ctxbench.harness.graders.llm", "ctxbench.strategies.summary"}
    alone(*words, "-q", after=f"assert not {heavy!r} & set(sys.modules)", cwd=tmp_path)
    alone(*words, after="assert 'pandas' in sys.modules", cwd=tmp_path)


def test_a_run_shows_progress_before_it_imports_the_engine(tmp_path: Path) -> None:
    """The bar of `run` is there before the data libraries are imported, which takes half a second; litellm, which takes
    seconds and tries the network, is never imported offline."""
    note = (
        "real, seen = progress.watching, []\n"
        "def watching():\n"
        "    seen.append({'numpy', 'pandas', 'pyarrow'} & set(sys.modules))\n"
        "    return real()\n"
        "progress.watching = watching"
    )
    path = recording(tmp_path, conversations=1)
    after = "assert seen == [set()], seen\nassert 'litellm' not in sys.modules"
    alone("run", path, "-s", "none", "-s", "summary", "-o", "r", before=note, after=after, cwd=tmp_path)


BAD = {
    "missing path": (["run", "nowhere.jsonl"], "nowhere.jsonl: there is no such file or folder"),
    "mistyped scenario": (["run", "standrad"], "did you mean 'standard'"),
    "unknown strategy": (["run", "-s", "windw(max_tokens=9)"], "unknown strategy 'windw'; did you mean 'window'"),
    "no run": (["report", "nowhere"], "nowhere: no run is here"),
    "out is a file": (["run", "good.jsonl", "-o", "prose.txt"], "prose.txt: is not a run folder"),
    "convert to nowhere": (["convert", "good.jsonl", "--to", "prose.txt/x.jsonl"], "cannot be written"),
}


@pytest.mark.parametrize("case", BAD, ids=list(BAD))
def test_what_the_user_can_mend(case: str, tmp_path: Path) -> None:
    """Each mistake is one clear line on standard error, with exit code 2."""
    words, said = BAD[case]
    recording(tmp_path, conversations=1).rename(tmp_path / "good.jsonl")
    (tmp_path / "prose.txt").write_text("Dear diary, today was fine.\n")
    done = ctxbench(*words, cwd=tmp_path, code=2)
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 2


def test_bad_lines_among_good_ones(tmp_path: Path) -> None:
    """A damaged recording is named and counted, the others are measured, and the exit code is 0."""
    path = recording(tmp_path, conversations=3)
    with path.open("ab") as file:
        file.write(b'{"ctxbench": "1", "id": "x", "messages": [{"id": "m0", "role": "boss"}]}\n')
    done = ctxbench("run", path, "-s", "none", "-o", "r", cwd=tmp_path)
    assert "left out:" in done.stderr
    assert "some.jsonl:4: messages[0].role: invalid enum value 'boss'" in done.stderr
    assert "3 conversations" in done.stdout
    assert "Left out: 1 record" in ctxbench("report", "r", "--all", "--print-only", cwd=tmp_path).stdout
    assert "some.jsonl:4" in ctxbench("run", path, "-o", "s", "--strict", cwd=tmp_path, code=2).stderr


def test_the_same_problem_many_times_in_a_file(tmp_path: Path) -> None:
    """Problems of a file that differ only in their place and in what they quote are one line with their number, so that
    they do not bury those of other files."""
    good = {"id": "a", "role": "user", "text": "hi"}
    roles = ["assistant", *(f"boss{n}" for n in range(14))]
    lines = [{"ctxbench": "1", "id": role, "messages": [good, {"id": "b", "role": role}]} for role in roles]
    (tmp_path / "many.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    wizard = {"ctxbench": "1", "id": "w", "messages": [{**good, "role": "wizard"}]}
    (tmp_path / "other.jsonl").write_text(json.dumps(wizard))
    recording(tmp_path, conversations=1)
    done = ctxbench("run", "many.jsonl", "other.jsonl", "some.jsonl", "-s", "none", "-o", "r", cwd=tmp_path)
    told = [line for line in done.stderr.splitlines() if line.startswith("left out:")]
    assert len(told) == 2
    assert "invalid enum value 'boss0'" in told[0]
    assert told[0].endswith(", and 13 more like it in this file")
    assert "invalid enum value 'wizard'" in told[1]
    report = ctxbench("report", "r", "--all", "--print-only", cwd=tmp_path).stdout
    assert "Left out: 15 records" in report
    assert "boss0" in report
    assert "boss1" not in report


def test_what_is_known_of_the_reading_is_said(tmp_path: Path) -> None:
    """Why files of a folder are no recordings, the first few with a reason, and what was named twice and read once."""
    folder = tmp_path / "data"
    folder.mkdir()
    path = recording(folder, conversations=1)
    for name in ("a.md", "b.md", "c.md", "d.md", "z.json", ".x"):
        (folder / name).write_text("[]" if name == "z.json" else "free")
    inputs = (folder, path, "traps", "traps")
    done = ctxbench("run", *inputs, "-s", "none", "-o", "r", cwd=tmp_path)
    assert said(done.stderr) == [
        f"not read in {folder}, no recordings: z.json (no conversation is in it), a.md, b.md, c.md, 1 more, 1 hidden",
        "note: traps: named more than once, measured once",
        f"note: {path}: a file named more than once, read once",
    ]


def test_a_conversation_by_its_number(tmp_path: Path) -> None:
    """`show` takes a number of its list where an id cannot be typed; an id that is a number comes first."""
    said = [{"id": "a", "role": "user", "text": "hello"}, {"id": "b", "role": "assistant", "text": "hi"}]
    names = ["line\none", "2", "long" * 100]
    lines = [json.dumps({"ctxbench": "1", "id": name, "messages": said}) for name in names]
    (tmp_path / "n.jsonl").write_text("\n".join(lines))
    ctxbench("run", "n.jsonl", "-s", "none", "-o", "r", cwd=tmp_path)
    listed = ctxbench("show", "r", cwd=tmp_path).stdout.splitlines()
    assert [line.split()[:2] for line in listed[3:6]] == [["1", "line·one"], ["2", "2"], ["3", names[2]]]
    for words in ("1", "2", "3", "line\none", names[2]):
        assert "hello" in ctxbench("show", "r", words, cwd=tmp_path).stdout
    assert "no conversation '4' is in this run" in ctxbench("show", "r", "4", cwd=tmp_path, code=2).stderr


def test_printed_commands_can_be_pasted(tmp_path: Path) -> None:
    """What `run` and `show` print to go on with works in a shell that has no ctxbench, whatever the folder's name."""
    path = recording(tmp_path, conversations=1)
    ran = ctxbench("run", path, "-s", "none", "-o", "my 'own' runs", cwd=tmp_path)
    printed = ran.stdout.splitlines()[-1]
    to_report, to_show = printed.partition("(")[2].rstrip(")").split(", ")
    assert shlex.split(to_report) == [CTXBENCH, "report", "my 'own' runs"]
    done = subprocess.run(to_show, shell=True, cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}, capture_output=True)
    assert done.returncode == 0
    on_path = {**os.environ, "PATH": with_ctxbench()}
    words = ["ctxbench", "show", "my 'own' runs"]
    done = subprocess.run(words, cwd=tmp_path, env=on_path, capture_output=True, check=True)
    assert done.stdout.splitlines()[-1].startswith(b"ctxbench show 'my '")


def test_hostile_text_is_text(tmp_path: Path) -> None:
    """Markup, terminal codes and table marks in a recording are printed as what they are."""
    hostile = "[bold red]x[/] \x1b[31m | <script>alert(1)</script>"
    line = {
        "ctxbench": "1",
        "id": hostile,
        "messages": [{"id": "a", "role": "user", "text": hostile}, {"id": "b", "role": "assistant"}],
    }
    (tmp_path / "h.jsonl").write_text(
        json.dumps(line) + "\n" + json.dumps({**line, "messages": [{"id": hostile, "role": "boss"}]})
    )
    ctxbench("run", "h.jsonl", "-s", "none", "-o", "r", cwd=tmp_path)
    shown = ctxbench("show", "r", hostile, "0", cwd=tmp_path).stdout
    assert "[bold red]x[/]" in shown
    assert "\x1b" not in shown
    assert "<script>" not in ctxbench("report", "r", "--markdown", "-", cwd=tmp_path).stdout


def test_a_first_look_needs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`demo` in an empty folder ends with what to use or keep; told again, it does all again."""
    shown = ctxbench("demo", cwd=tmp_path).stdout
    assert shown.split("\n")[1].startswith(("Use ", "Try ", "Keep the whole history"))
    told: list[bool] = []
    monkeypatch.setattr("ctxbench.cli.run.run", lambda inputs, overwrite, **more: told.append(overwrite))
    for out in (tmp_path / "runs" / "demo", tmp_path / "new"):
        demo(out=out)
    assert told == [True, False]


def test_a_run_of_some_grows_to_all(tmp_path: Path) -> None:
    """--limit takes the first conversations; with more it goes on, and with fewer it says why not."""
    path, run = recording(tmp_path, conversations=3), ("run", "some.jsonl", "-s", "none", "-o", "r")
    (tmp_path / "asked").write_text('{"conversation": "nobody", "id": "q", "question": "Who?", "answers": ["I"]}')
    asked = ctxbench(*run, "--limit", 2, "--probes", "asked", cwd=tmp_path, code=2)
    assert "'nobody' names no conversation" in asked.stderr
    ctxbench(*run, "--limit", 2, cwd=tmp_path)
    assert list(load(tmp_path / "r").table("results").conversation) == ["c0", "c1"]
    assert "holds a run with --limit 2: give no smaller" in ctxbench(*run, "--limit", 1, cwd=tmp_path, code=2).stderr
    ctxbench(*run, cwd=tmp_path)
    assert (
        "holds a run with all conversations: give no smaller"
        in ctxbench(*run, "--limit", 2, cwd=tmp_path, code=2).stderr
    )
    ctxbench("run", path, "-s", "none", "-o", "whole", cwd=tmp_path)
    steps = [load(tmp_path / name).table("steps") for name in ("r", "whole")]
    assert steps[0].equals(steps[1])


def test_a_run_of_nothing_named_says_what_it_takes(tmp_path: Path) -> None:
    """Without recordings it names the scenario, how large that is, and where the results go; -q says nothing."""
    run = ("run", "-s", "none", "--limit", 1, "--overwrite")
    first, second, *_ = said(ctxbench(*run, cwd=tmp_path).stderr)
    assert first == "no PATH is named: replays the scenario standard through none into runs/standard/"
    assert second.startswith("standard: 48 conversations")
    assert "no PATH" not in ctxbench(*run, "-q", cwd=tmp_path).stderr


def test_the_window_is_a_model_or_a_number(tmp_path: Path) -> None:
    """Requests over `--window` tokens are counted, `--model` names what is billed, and neither can be nonsense."""
    path = recording(tmp_path)
    run = ("run", path, "-s", "none", "-o", "r", "--overwrite", "--json")
    found = json.loads(ctxbench(*run, "--window", 100, cwd=tmp_path).stdout)
    assert found["strategies"]["none"]["overflows"] > 0
    found = json.loads(ctxbench(*run, "--window", "gpt-4o", cwd=tmp_path).stdout)
    assert found["strategies"]["none"]["overflows"] == 0
    assert "holds nothing" in ctxbench("run", path, "--window", "0", cwd=tmp_path, code=2).stderr
    said = ctxbench("run", path, "--model", "nobody/knows", "-o", "q", cwd=tmp_path, code=2).stderr
    assert "nobody/knows" in said
    assert not (tmp_path / "q").exists()
    shown = ctxbench("run", path, "-s", "none", "-o", "s", "--model", "gpt-5.6", cwd=tmp_path).stdout
    assert "billed under gpt-5.6" in shown
    assert "report s -m gpt-5.6" in shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("report --lose x", "--lose x: give a number"),
        ("report --lose 101", "--lose 101: give 100 or less"),
        ("run --jobs -1", "--jobs -1: give 0 or more"),
        ("show runs c x", "STEP x: give a whole number"),
        ("bill --rules mine", "--rules mine: 'mine' is not one of "),
        ("run --strategies x", "there is no option --strategies; here it is --strategy SPEC"),
        ("audit --limit 3", "there is no option --limit; here it is --last N"),
        ("run --junit x", "there is no option --junit; ctxbench gate has one"),
        ("run --strateg x", "there is no option --strateg; did you mean '--strategy'"),
        ("run --xyz", "there is no option --xyz: ctxbench run -h lists all"),
        ("audit ''", "an argument is an empty text"),
        ("eval", "there is no command 'eval'; here it is ctxbench run"),
        ("export mlflw", "there is no command 'mlflw'; did you mean 'mlflow'?"),
        ("nosuch", "there is no command 'nosuch': ctxbench -h lists all"),
    ],
)
def test_a_word_that_a_command_does_not_know(words: str, said: str) -> None:
    """One error, in our words."""
    with pytest.raises(UserError, match=re.escape(said)):
        CliRunner().invoke(app, shlex.split(words), catch_exceptions=False)
