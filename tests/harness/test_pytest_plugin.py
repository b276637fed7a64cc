"""The pytest plug-in, in projects of its own, each tested by a process of its own."""

import subprocess
import sys
from importlib.metadata import entry_points
from inspect import signature
from itertools import islice
from pathlib import Path

import pytest

import ctxbench
from ctxbench.scenarios.embedded import scenario
from ctxbench.testing import RunOptions
from tests.harness.command import forked
from tests.harness.compare.builders import signed

# An install that is older than the plug-in does not know its entry point: then it is named.
KNOWN = bool(entry_points(group="pytest11", name="ctxbench"))
PLUGIN = () if KNOWN else ("-p", "ctxbench.testing")
OTHERS = ("-p", "no:langsmith_plugin", "-p", "no:hypothesispytest")
"""Plug-ins of other libraries, which take a second to import."""

TEST = """
import ctxbench

def test_ours(ctxbench_run):
    run = ctxbench_run()
    assert run.strategies == ("none", "window(max_tokens=1500)")
    assert "over budget" not in " ".join(run.verdict().objections("window(max_tokens=1500)"))
    assert ctxbench_run() is run

def test_others(ctxbench_run, tmp_path):
    (tmp_path / "seen").write_text(str(ctxbench_run().folder))
"""
SETTINGS = """
[pytest]
filterwarnings = error
ctxbench_recordings = recordings
ctxbench_strategies =
    none
    window(max_tokens=1500)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with recordings, settings and a test."""
    (tmp_path / "recordings").mkdir()
    for number, each in enumerate(islice(scenario("demo"), 2)):
        (tmp_path / "recordings" / f"{number}.jsonl").write_bytes(each.to_json())
    (tmp_path / "pytest.ini").write_text(SETTINGS)
    (tmp_path / "test_ours.py").write_text(TEST)
    return tmp_path


def run_pytest(project: Path, *words: str, code: int = 0) -> str:
    """Run pytest in the project, in a process that has the libraries; return what it printed."""
    done = forked("pytest", ["pytest", *options(project), *words], project)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def options(project: Path) -> list[str]:
    """The options of each session."""
    return [*PLUGIN, *OTHERS, "-p", "no:cacheprovider", f"--basetemp={project / 'tmp'}"]


def test_a_run_is_made_once(project: Path) -> None:
    """Settings say what is run; two tests that ask for the same run share it."""
    assert "2 passed" in run_pytest(project)
    assert len(list((project / "tmp" / "ctxbench").glob("*/manifest.json"))) == 1


def test_workers_share_a_run(project: Path) -> None:
    """Under pytest-xdist the workers make it once, and the gate is passed once, by the process that started them."""
    pytest.importorskip("xdist")
    run_pytest(project, "--ctxbench-gate=baseline.json", "--ctxbench-update")
    printed = run_pytest(project, "-n", "2", "--ctxbench-gate=baseline.json")
    assert printed.count("The gate passes") == 1
    assert len(list((project / "tmp" / "ctxbench").glob("*/manifest.json"))) == 1
    file = project / "baseline.json"
    file.write_text(signed(file.read_text().replace("1500", "1501")))
    assert "The gate FAILS" in run_pytest(project, "-n", "2", "--ctxbench-gate=baseline.json", code=1)


def test_the_gate_fails_a_session_whose_tests_pass(project: Path) -> None:
    """The baseline is written on demand; a strategy that sends less of what is needed fails, and the table says why."""
    assert "written: " in run_pytest(project, "--ctxbench-gate=baseline.json", "--ctxbench-update")
    printed = run_pytest(project, "--ctxbench-gate=baseline.json")
    assert "ctxbench gate" in printed
    assert "The gate passes" in printed
    (project / "pytest.ini").write_text(SETTINGS.replace("    window(max_tokens=1500)\n", ""))
    (project / "test_ours.py").write_text("def test_one(ctxbench_run):\n    assert ctxbench_run()\n")
    printed = run_pytest(project, "--ctxbench-gate=baseline.json", code=1)
    assert "1 passed" in printed
    assert "Lost: 1 strategy" in printed


def test_several_runs_have_names(project: Path) -> None:
    """One file cannot guard two runs: a folder has a baseline for each name."""
    (project / "test_ours.py").write_text(
        "def test_both(ctxbench_run):\n"
        "    assert ctxbench_run(strategies='none', name='whole').strategies == ('none',)\n"
        "    assert ctxbench_run(strategies='last_turn', name='short').strategies == ('last_turn',)\n"
    )
    run_pytest(project, "--ctxbench-gate=baselines", "--ctxbench-update")
    assert sorted(path.name for path in (project / "baselines").iterdir()) == ["short.json", "whole.json"]
    assert run_pytest(project, "--ctxbench-gate=baselines").count("The gate passes") == 2
    printed = run_pytest(project, "--ctxbench-gate=baselines/whole.json", code=1)
    assert "2 runs were made" in printed
    (project / "baselines" / "short.json").unlink()
    assert "short.json: there is no baseline" in run_pytest(project, "--ctxbench-gate=baselines", code=1)


def test_mistakes_are_said_at_once(project: Path) -> None:
    """A missing baseline or option ends pytest before any test; no run at all fails the gate; so does no recording."""
    assert "--ctxbench-update writes it" in run_pytest(project, "--ctxbench-gate=nothing.json", code=4)
    assert "--ctxbench-update needs --ctxbench-gate" in run_pytest(project, "--ctxbench-update", code=4)
    (project / "test_ours.py").write_text("def test_nothing():\n    pass\n")
    printed = run_pytest(project, "--ctxbench-gate=b.json", "--ctxbench-update", code=1)
    assert "no test asked for a run" in printed
    (project / "pytest.ini").write_text("[pytest]\n")
    (project / "test_ours.py").write_text("def test_nothing(ctxbench_run):\n    ctxbench_run()\n")
    assert "name recordings" in run_pytest(project, code=1)


def test_the_fixture_takes_the_options_of_a_run() -> None:
    """It is typed: every parameter of `ctxbench.run` but the recordings, which stand first, and the folder."""
    assert RunOptions.__annotations__.keys() == signature(ctxbench.run).parameters.keys() - {"inputs", "out"}


def test_pytest_pays_nothing_for_it(tmp_path: Path) -> None:
    """A project that does not use it imports nothing of it but the plug-in, and no library; as a user starts pytest."""
    (tmp_path / "test_nothing.py").write_text(
        "import sys\n"
        "def test_nothing():\n"
        "    ours = {name for name in sys.modules if name.partition('.')[0] == 'ctxbench'}\n"
        "    assert ours <= {'ctxbench', 'ctxbench.harness', 'ctxbench.api', 'ctxbench.testing'}, ours\n"
        "    assert not {'pandas', 'numpy', 'msgspec', 'filelock'} & set(sys.modules)\n"
    )
    command = [sys.executable, "-m", "pytest", *options(tmp_path), "-W", "error"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 passed" in done.stdout, done.stdout + done.stderr
