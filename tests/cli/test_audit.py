"""`ctxbench audit`: from recorded sessions to a verdict on their agent's own compaction."""

import gzip
import json
import os
import zipfile
from pathlib import Path

import pytest

from ctxbench.scenarios.model import Call, Compaction, Conversation, Message, ToolCall
from tests.harness.command import ctxbench, said


def sessions(folder: Path, number: int, summary: str = "All went well.", hidden: str = "") -> Path:
    """A folder of sessions of 12 calls. The agent compacts after 8 of them, and then uses a path from before."""
    folder.mkdir(parents=True, exist_ok=True)
    for session in range(number):
        messages = [Message("s", "system", "You help.")]
        for turn in range(12):
            path = f"/srv/{session}/{turn if turn != 10 else 3}.csv"
            messages += [
                Message(f"u{turn}", "user", f"Look at {path} " + f"and row {session * turn} " * 9),
                Message(f"a{turn}", "assistant", f"I looked at {path}."),
            ]
        compactions = (Compaction("a7", summary, hidden=hidden),) if summary or hidden else ()
        conversation = Conversation(f"s{session}{hidden[:1]}", tuple(messages), compactions=compactions)
        (folder / f"s{session}{hidden[:1]}.jsonl").write_bytes(conversation.to_json() + b"\n")
    return folder


def verdict(stdout: str) -> list[str]:
    """The lines above the first table."""
    return stdout.strip().split("\n\n")[0].splitlines()


def test_an_audit(tmp_path: Path) -> None:
    """The verdict stands first, in at most 12 lines, and the run folder is one like any other."""
    sessions(tmp_path / "mine", 9)
    done = ctxbench("audit", "mine", "-j", 1, cwd=tmp_path)
    lines = verdict(done.stdout)
    assert len(lines) <= 12
    assert "your agent's own compaction" in lines[0]
    assert "9 times in 9 of 9 sessions: 36 of 108 model calls came after it" in lines[1]
    words = [line.split()[0] for line in lines[1:]]
    assert words[:3] == ["compacted", "tokens", "cost"]
    assert "estimated for 9 of 9" in done.stdout
    assert words[-1] == "results"
    assert "runs/audit/   (all tables, against sending everything: ctxbench report runs/audit --all)" in lines[-1]
    assert "step 11 of 0 to 11" in ctxbench("show", "runs/audit", 1, 11, "-s", "recorded", cwd=tmp_path).stdout


def readers(folder: Path, number: int, again: int) -> Path:
    """Sessions that read eight files, compact, read the first ones again, and two more. Their rules go with them."""
    folder.mkdir(parents=True, exist_ok=True)
    for session in range(number):
        rules = "# AGENTS.md instructions for /repo\n\n- Never push to main.\n- Use pnpm, not npm"
        messages, time = [Message("u", "user", rules, time=0.0)], 0.0
        for turn, file in enumerate((*range(8), "summary", *range(again), 8, 9)):
            if file == "summary":
                messages.append(Message("go", "user", "Go on.", time=time))
                continue
            path, time = f"/repo/{session}_{file}.py", time + 20
            call = ToolCall(f"t{turn}", "open_file", json.dumps({"path": path}))
            messages += [
                Message(
                    f"a{turn}", "assistant", "", (call,), time=time, call=Call("claude-sonnet-5", started=time - 19)
                ),
                Message(
                    f"r{turn}",
                    "tool",
                    f"# {path}\n" + f"CONSTANT_{session} = {file}\n" * 400,
                    answers=call.id,
                    time=time,
                ),
            ]
        messages.append(Message("end", "assistant", f"CONSTANT_{session} is in /repo/{session}_9.py."))
        compactions = (Compaction("r7", "Eight files were read."),) if again else ()
        conversation = Conversation(f"r{session}", tuple(messages), compactions=compactions)
        (folder / f"r{session}.jsonl").write_bytes(conversation.to_json() + b"\n")
    return folder


def test_calls_that_are_made_again(tmp_path: Path) -> None:
    """Without the compaction the same work costs what it costs in sessions that had none, to the cent."""
    readers(tmp_path / "mine", 9, again=6)
    readers(tmp_path / "whole", 9, again=0)
    done = ctxbench("audit", "mine", "-j", 1, "--json", cwd=tmp_path)
    found = json.loads(done.stdout)
    own, strategies = found["own"], found["against_everything"]["strategies"]
    assert found["use"] == "none"
    assert own["again"] == {"dropped": 54, "changed": 0, "there": 0}
    assert own["spared"] == 54
    assert own["forgetful"] == 9
    assert own["lost"] == {"Never push to main.": "AGENTS.md", "Use pnpm, not npm": "AGENTS.md"}
    ctxbench("run", "whole", "-s", "none", "-s", "recorded", "-o", "runs/whole", cwd=tmp_path)
    bill = json.loads(ctxbench("bill", "runs/whole", "-m", "claude-sonnet-5", "--json", cwd=tmp_path).stdout)
    (whole,) = (row for row in bill["bills"] if row["strategy"] == "none")
    assert strategies["recorded"]["cost_change"]["before"] == pytest.approx(whole["cost"])
    lines = verdict(ctxbench("audit", "mine", "-j", 1, cwd=tmp_path).stdout)
    assert lines[0].startswith("Send everything: with your agent's own compaction this work cost $")
    assert "2 rules of AGENTS.md reached no call after it" in " ".join(lines[:2])
    assert "54 tool calls after it repeat earlier ones: 54 whose result had been dropped" in " ".join(lines)


def test_one_compaction_decides_nothing(tmp_path: Path) -> None:
    """Of many sessions one was compacted: neither keep nor change is said."""
    readers(tmp_path / "mine", 1, again=6)
    sessions(tmp_path / "mine", 9, summary="")
    lines = verdict(ctxbench("audit", "mine", "-j", 1, cwd=tmp_path).stdout)
    assert lines[0].startswith("Not decided: your agent compacted in 1 session of 10, and it takes 8")
    assert (tmp_path / "runs/audit/uncompacted/manifest.json").is_file()
    (tmp_path / "mine/r0.jsonl").unlink()
    ctxbench("audit", "mine", "-j", 1, cwd=tmp_path)
    assert not list(tmp_path.glob("runs/audit/uncompacted*"))  # no call is needless now


def test_one_long_session_decides_nothing(tmp_path: Path) -> None:
    """It is more than a third of what the compacted sessions cost."""
    readers(tmp_path / "mine", 9, again=1)
    readers(tmp_path / "more", 1, again=60)
    (tmp_path / "more/r0.jsonl").replace(tmp_path / "mine/r0.jsonl")
    lines = verdict(ctxbench("audit", "mine", "-j", 1, cwd=tmp_path).stdout)
    assert lines[0].startswith("Not decided: one session is ")


def test_a_summary_that_is_not_recorded_behind_one_that_is(tmp_path: Path) -> None:
    """The session is left out as a whole, though it was replayed up to there."""
    folder = sessions(tmp_path / "mine", 9)
    session = json.loads((folder / "s0.jsonl").read_text())
    session["compactions"].append({"after": "a9", "summary": "", "hidden": "it is encrypted"})
    (folder / "s0.jsonl").write_text(json.dumps(session) + "\n")
    done = ctxbench("audit", "mine", "-j", 1, cwd=tmp_path)
    assert "8 times in 8 of 8 sessions" in done.stdout
    assert "left out" in done.stdout


def test_sessions_that_are_packed(tmp_path: Path) -> None:
    """A compressed session and those in an archive are read as they are, and the newest are found among them."""
    sessions(tmp_path / "mine", 3)
    with zipfile.ZipFile(tmp_path / "mine" / "old.zip", "w") as archive:
        archive.write(tmp_path / "mine" / "s0.jsonl", "s0.jsonl")
    (tmp_path / "mine" / "s0.jsonl").unlink()
    with gzip.open(tmp_path / "mine" / "s1.jsonl.gz", "wb") as packed:
        packed.write((tmp_path / "mine" / "s1.jsonl").read_bytes())
    (tmp_path / "mine" / "s1.jsonl").unlink()
    os.utime(tmp_path / "mine" / "old.zip", (0, 0))
    done = ctxbench("audit", "mine", "-j", 1, "--last", 2, "--json", cwd=tmp_path)
    assert "the newest 2 of 3 recordings" in done.stderr
    assert json.loads(done.stdout)["own"]["sessions"] == 2
    assert json.loads(ctxbench("audit", "mine", "-j", 1, "--json", cwd=tmp_path).stdout)["own"]["sessions"] == 3


def test_recordings_of_several_files(tmp_path: Path) -> None:
    """An audit reads what a run of the folder reads; --last counts the files of one recording once."""
    folder = Path(__file__).parents[1] / "goldens/recordings/openhands"
    ctxbench("audit", folder, "-j", 1, cwd=tmp_path)
    ctxbench("run", folder, "-s", "none", "-q", "-o", "runs/run", cwd=tmp_path)
    audit, run = (json.loads((tmp_path / f"runs/{name}/manifest.json").read_text()) for name in ("audit", "run"))
    assert audit["conversations"] == 3
    assert [audit[key] for key in ("digest", "problems")] == [run[key] for key in ("digest", "problems")]
    done = ctxbench("audit", folder, "-j", 1, "--last", 1, cwd=tmp_path)
    assert "the newest 1 of 3 recordings" in done.stderr
    assert "1 conversation, " in done.stdout


def test_a_chat_in_which_no_quality_can_be_measured(tmp_path: Path) -> None:
    """It was compacted by nobody, and that is said: not a single strategy has a place."""
    messages = [{"role": role, "content": role} for role in ("user", "assistant", "user", "assistant")]
    (tmp_path / "chat.json").write_text(json.dumps({"messages": messages}))
    lines = verdict(ctxbench("audit", "chat.json", "-j", 1, cwd=tmp_path).stdout)
    assert lines[0].startswith("Your agent compacted nothing")


def test_summaries_that_are_not_recorded(tmp_path: Path) -> None:
    """Their sessions are left out with the reason; where there are no others, all is measured against the whole."""
    sessions(tmp_path / "mine", 2, summary="", hidden="it is encrypted")
    lines = verdict(ctxbench("audit", "mine", "-j", 1, cwd=tmp_path).stdout)
    assert lines[0].startswith("Your agent's own compaction cannot be measured")
    reason = "2 sessions: the summary of a compaction is not in the recording: it is encrypted"
    assert lines[1].split(maxsplit=1) == ["why", reason]
    assert "so strategies are measured against sending everything; 2 conversations are too few" in lines[2]
    assert not any(line.startswith("left out") for line in lines)
    sessions(tmp_path / "mine", 3, summary="")
    lines = verdict(ctxbench("audit", "mine", "-j", 1, cwd=tmp_path).stdout)
    assert lines[0].startswith("Your agent compacted nothing in the 3 sessions that can be replayed as they were sent")
    sessions(tmp_path / "mine", 2)
    lines = verdict(ctxbench("audit", "mine", "-j", 1, cwd=tmp_path).stdout)
    assert "2 times in 2 of 3 sessions" in lines[1]
    assert any(line.endswith(reason) for line in lines)


def test_folders_of_agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a path they are listed; without a terminal nobody can be asked whether to read them: that is no error."""
    monkeypatch.setenv("HOME", str(tmp_path))
    sessions(tmp_path / ".claude/projects/mine", 2)
    looked = ctxbench("audit", cwd=tmp_path)
    assert said(looked.stderr)[0] == "found on this machine:"
    assert said(looked.stderr)[1].split("  ")[1:4] == ["Claude Code", "~/.claude/projects", "2 files"]
    assert said(looked.stderr)[2].startswith("not read, since nobody is here to be asked: to audit one, name it")
    assert not (tmp_path / "runs").exists()


def test_bad_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line each, and no run folder."""
    monkeypatch.setenv("HOME", str(tmp_path / "empty"))
    (tmp_path / "nothing").mkdir()
    for words, error in (
        ([], "no session folder of a known agent is here (ctxbench list formats): give a PATH"),
        (["nowhere"], "nowhere: there is no such file or folder"),
        (["nothing"], "nothing: no recorded session is there"),
        (["nothing", "-m", "no-such-model"], "the price of no-such-model is not known"),
    ):
        done = ctxbench("audit", *words, cwd=tmp_path, code=2)
        assert said(done.stderr)[-1].startswith(f"error: {error}")
    assert not (tmp_path / "runs").exists()


def test_what_cannot_be_read_leaves_the_audit_before(tmp_path: Path) -> None:
    """The error names the damage, and the figures of the audit before are still there."""
    sessions(tmp_path / "mine", 1)
    (tmp_path / "cut.json").write_text('{"messages": [{"role": "us')
    ctxbench("audit", "mine", "-j", 1, cwd=tmp_path)
    failed = ctxbench("audit", "cut.json", "-j", 1, cwd=tmp_path, code=2)
    assert "cut.json:1" in failed.stderr
    assert "mine" in ctxbench("report", "runs/audit", "--json", cwd=tmp_path).stdout


def test_a_finished_audit_is_made_anew(tmp_path: Path) -> None:
    """Sessions grow: the next audit replaces the last one, without a word of --overwrite."""
    folder = sessions(tmp_path / "mine", 2)
    ctxbench("audit", "mine", "-j", 1, cwd=tmp_path)
    sessions(folder, 3)
    assert "3 times in 3 of 3 sessions" in ctxbench("audit", "mine", "-j", 1, cwd=tmp_path).stdout
