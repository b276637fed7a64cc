"""`ctxbench.toml`: what stands in it counts, the command line wins, and a mistake in it is named with its line."""

import json
import os
from pathlib import Path

import pytest

from ctxbench.cli import configuration
from tests.harness.command import ctxbench
from tests.harness.runs import recording

SETTINGS = """
recordings = "some.jsonl"
strategies = ["none", "last_turn"]
model = ["gpt-5.6"]
window = 9000

[run]
out = "runs/mine"
report = true
"""


def test_run_without_words_does_the_whole_job(tmp_path: Path) -> None:
    """Recordings, strategies, model and window are the file's; the report is written; a folder below is as good."""
    recording(tmp_path, conversations=2)
    (tmp_path / "ctxbench.toml").write_text(SETTINGS)
    (tmp_path / "notes").mkdir()
    shown = ctxbench("run", cwd=tmp_path).stdout
    assert "2 conversations" in shown
    assert "billed under gpt-5.6" in shown
    assert "last_turn" in shown
    assert (tmp_path / "runs/mine/report/report.html").is_file()
    assert "9,000 tokens (--window)" in ctxbench("report", "runs/mine", "--all", "--print-only", cwd=tmp_path).stdout
    ctxbench("run", "-s", "none", "--out", "../other", cwd=tmp_path / "notes")
    plan = json.loads((tmp_path / "other" / "manifest.json").read_text())["plan"]
    assert (plan["strategies"], plan["names"]) == (["none"], ["../some.jsonl"])


def test_the_table_of_pyproject(tmp_path: Path) -> None:
    """`[tool.ctxbench]` is as good as the file; a pyproject.toml without it is passed over, broken or not."""
    (tmp_path / "pyproject.toml").write_text(
        '[tool.ctxbench]\nencoding = "chars4"\n\n[tool.ctxbench.run]\njobs = "2"\n'
    )
    done = ctxbench("config", "run", cwd=tmp_path, code=2)
    assert "pyproject.toml:5: run.jobs: must be a whole number from 0 to 1024, not '2'" in done.stderr
    below = tmp_path / "below"
    below.mkdir()
    (below / "pyproject.toml").write_text("[tool.other\n")
    (tmp_path / "pyproject.toml").write_text('[tool.ctxbench]\nencoding = "chars4"\n')
    assert "--encoding" in ctxbench("config", "run", cwd=below).stdout
    rows = json.loads(ctxbench("config", "--json", "run", "--jobs", 3, cwd=below).stdout)["settings"]
    sources = {row["option"]: (row["value"], row["source"]) for row in rows}
    assert sources["--encoding"] == ("chars4", "../pyproject.toml:2")
    assert sources["--jobs"] == (3, "command line")
    assert sources["--answerer"] == ("offline", "default")


def test_secrets_are_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`config` names an address without its user part, wherever that was given."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://u:envsecret@h")
    (tmp_path / "ctxbench.toml").write_text('tracking = "http://user:hunter2@h"\n', encoding="utf-8-sig")
    for words in ((), ("run",), ("--json",), ("--json", "run")):
        shown = ctxbench("config", *words, cwd=tmp_path).stdout
        assert "hunter2" not in shown
        assert "envsecret" not in shown


def test_the_environment_wins_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tracking server in the environment counts, and `config` says so."""
    (tmp_path / "ctxbench.toml").write_text('tracking = "http://file"\n')
    assert "http://file" in ctxbench("config", "export", "mlflow", cwd=tmp_path).stdout
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://environment")
    [line] = [
        row
        for row in ctxbench("config", "export", "mlflow", cwd=tmp_path).stdout.splitlines()
        if "--tracking-uri" in row
    ]
    assert line.split()[1:] == ["http://environment", "environment:", "MLFLOW_TRACKING_URI"]


def test_parameters_of_all_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table `models` holds for each that is named without them, by a strategy too; a wrong one is said."""
    path = recording(tmp_path, conversations=1)
    words = ("run", path, "-s", "summary(threshold=8, summariser='openai/m')", "--cassette", "c", "-o", "r")
    (tmp_path / "ctxbench.toml").write_text("[models]\nretries = 0\napi_base = 'http://127.0.0.1:9/v1'\n")
    ctxbench("config", "--trust", cwd=tmp_path)
    assert "openai/m: the connection failed" in ctxbench(*words, cwd=tmp_path, code=2).stderr
    (tmp_path / "ctxbench.toml").write_text("[models]\nretrys = 0\n")
    assert (
        "models.retrys: is no parameter of a model; did you mean 'retries'?"
        in ctxbench(*words, cwd=tmp_path, code=2).stderr
    )


def test_a_file_above_is_named(tmp_path: Path) -> None:
    """A file out of sight is named in one line where it sets something; the one that stands here is not."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "ctxbench.toml").write_text('recordings = "some.jsonl"\n')
    line = f"settings: {Path('..', 'ctxbench.toml')}"
    assert ctxbench("run", cwd=tmp_path / "notes", code=2).stderr.splitlines()[0] == line
    assert "settings" not in ctxbench("run", cwd=tmp_path, code=2).stderr
    assert "settings" not in ctxbench("list", "scenarios", cwd=tmp_path / "notes").stderr


def test_the_policy_may_stand_in_the_file(tmp_path: Path) -> None:
    """A table `policy` guards as a file of its own does; the command's own table wins; a mistake has its line."""
    recording(tmp_path, conversations=2)
    ctxbench("run", "some.jsonl", "-s", "none", "-s", "last_turn", "--out", "now", "--answerer", "none", cwd=tmp_path)
    ctxbench("gate", "now", "--update", cwd=tmp_path)
    file = tmp_path / "ctxbench.toml"
    own = tmp_path / "gate.toml"
    own.write_text('strategies = ["last_turn"]\n\n[metrics.tokens_sent]\n')
    wanted = ctxbench("gate", "now", "--policy", "gate.toml", "--json", cwd=tmp_path).stdout
    file.write_text('[policy]\nstrategies = ["last_turn"]\n\n[policy.metrics.tokens_sent]\n')
    (tmp_path / "below").mkdir()
    assert ctxbench("gate", "now", "--json", cwd=tmp_path).stdout == wanted
    below = ctxbench("gate", "../now", "-b", "../baseline.json", "--json", cwd=tmp_path / "below").stdout
    assert json.loads(below)["comparisons"] == json.loads(wanted)["comparisons"]
    file.write_text(
        'policy = "none.toml"\n[gate]\npolicy = { strategies = ["last_turn"], metrics = { tokens_sent = {} } }\n'
    )
    assert ctxbench("gate", "now", "--json", cwd=tmp_path).stdout == wanted
    file.unlink()
    (tmp_path / "pyproject.toml").write_text("[tool.ctxbench.policy.metrics.tokens_send]\n")
    wrong = ctxbench("gate", "now", cwd=tmp_path, code=2).stderr
    assert "pyproject.toml:1: tool.ctxbench.policy.metrics.tokens_send: unknown metric" in wrong


WRONG = {
    'recodings = ["x"]': "ctxbench.toml:1: recodings: there is no such key; did you mean 'recordings'",
    "model = 3": "ctxbench.toml:1: model: must be text, not 3",
    "# jobs\n[run]\njbos = 2": "ctxbench.toml:3: run.jbos: `ctxbench run` has no option 'jbos'; did you mean 'jobs'",
    "[run]\njobs = -1": "ctxbench.toml:2: run.jobs: must be a whole number from 0 to 1024, not -1",
    "[lab.validat]": "ctxbench.toml:1: lab.validat: `ctxbench lab` has no command 'validat'; did you mean 'validate'",
    "[run]\nengine = 3": "ctxbench.toml:2: run.engine: must be text, not 3",
    "[bill]\nrules = 'new'": "bill.rules: must be 'recording' or ",
    "[bill]\nplacement = ['new']": "bill.placement: must be 'automatic' or ",
    "run = 3": "ctxbench.toml:1: run: is a table of the options of `ctxbench run` (write [run])",
    "[run": "ctxbench.toml:1: not TOML: ",
    "answerer = 'local'": "ctxbench.toml:1: answerer: there is no such key; write it below [run]",
    "[models]\n'timeout=3, api_base' = 'http://h'": "models.timeout=3, api_base: is no parameter of a model",
    "[models]\n'ａpi_key_env' = 'SECRET'": "models.ａpi_key_env: is no parameter of a model",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_mistake_is_named_with_its_line(text: str, tmp_path: Path) -> None:
    """Every command prints one line with file, line, key and what to do; --help works all the same."""
    (tmp_path / "ctxbench.toml").write_text(text + "\n")
    done = ctxbench("list", "scenarios", cwd=tmp_path, code=2)
    assert WRONG[text] in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "Usage" in ctxbench("list", "--help", cwd=tmp_path).stdout


def test_init_lists_agents_and_reads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts files of known agents by name, even those that cannot be opened, and replaces no file unasked."""
    home = tmp_path / "home"
    for file in (".claude/projects/a/1.jsonl", ".claude/projects/a/2.jsonl", ".pi/agent/sessions/x/1.jsonl"):
        (home / file).parent.mkdir(parents=True, exist_ok=True)
        (home / file).symlink_to("nowhere")
    monkeypatch.setenv("HOME", str(home))
    work = tmp_path / "work"
    work.mkdir()
    shown = ctxbench("init", cwd=work).stdout
    assert "found: ~/.claude/projects (Claude Code, 2 files)" in shown
    assert "found: ~/.pi/agent/sessions (pi, 1 file)" in shown
    text = (work / "ctxbench.toml").read_text()
    assert "#   ~/.claude/projects  (Claude Code, 2 files)\n" in text
    assert os.listdir(work) == ["ctxbench.toml"]
    assert ctxbench("init", cwd=work).stdout == shown, "it may have been stopped"
    (work / "ctxbench.toml").write_text("# edited")
    assert "give --force to replace it" in ctxbench("init", cwd=work, code=2).stderr
    assert "no such file" in ctxbench("init", "nowhere", "--force", cwd=work, code=2).stderr
    assert (work / "ctxbench.toml").read_text() == "# edited"
    ctxbench("init", "smoke", "~/.pi", "--force", cwd=work)
    rows = json.loads(ctxbench("config", "--json", cwd=work).stdout)["settings"]
    assert (rows[0]["option"], rows[0]["value"]) == ("recordings", ["smoke", f"{home}/.pi"])
    assert rows[0]["source"] == "ctxbench.toml:8"


def set_options(folder: Path) -> set[str]:
    """Return the options that the file of a folder sets, each with its command."""
    rows = json.loads(ctxbench("config", "--json", cwd=folder).stdout)["settings"]
    return {f"{command} {row['option']}" for row in rows for command in row["commands"]}


def test_what_init_writes_can_be_uncommented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each commented setting of the file is one that counts when its # is taken away."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    ctxbench("init", cwd=tmp_path)
    file = tmp_path / "ctxbench.toml"
    lines = file.read_text().splitlines()
    file.write_text(
        "\n".join(line[2:] if line.startswith("# ") and (" = " in line or line[2] == "[") else line for line in lines)
    )
    options = set_options(tmp_path)
    assert {"run recordings", "run --strategy", "gate --policy", "run --jobs", "export mlflow --text"} <= options


def test_the_example_of_the_page(tmp_path: Path) -> None:
    """The file that docs/configuration.md shows can be used as it is, and each key of its table is in it."""
    page = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text("utf-8")
    example = page.partition("```toml\n")[2].partition("```")[0]
    (tmp_path / "ctxbench.toml").write_text(example)
    options = set_options(tmp_path)
    assert {"run recordings", "tune --model", "export mlflow --text", "lab answer --answerer"} <= options
    for key in configuration.SHARED:
        assert f"\n{key} = " in f"\n{example}"
        assert f"| `{key}` |" in page
