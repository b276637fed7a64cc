"""The kinds of turn in the coding scenario: each asks, works with the tools, sums up, and offers probes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from random import Random

from ..wording import one, say
from .decisions import decisions_page
from .output import diff, git_log, git_show, log_tail, pytest_run, staging
from .session import Session, ToolUse
from .source import new_method, other_value
from .steps import commit_change, grep_for, offer_constant, read_file, shell, some_module


def bug(s: Session) -> None:
    """A ticket: find where the code is raised, see the test fail, mend the line, see it pass, commit."""
    world = s.world
    module = world.fresh()
    planted = module.bug
    assert planted is not None, "every module is written with a bug"
    ticket, seen = world.ticket(), s.days_ago(2, 19)
    s.look_at(module)
    s.who()
    zh = s.chinese
    s.facts |= {
        "ticket": ticket,
        "day": s.day(seen)[0],
        "method": planted.method,
        "test": planted.test_name,
        "symptom": say(s.rng, planted.bug.symptom_zh if zh else planted.bug.symptom, planted.facts),
        "cause": say(s.rng, planted.bug.cause_zh if zh else planted.bug.cause, planted.facts),
    }
    asked = s.user("bug")
    second = shell(f"tail -n 200 /var/log/{world.package}.log", log_tail(world, module, s.now))
    if s.rng.random() < 0.5:
        second = shell("git log -n 20 --date=iso", git_log(world, 20))
    where, _ = s.both("look", [grep_for(s, module, module.code, f"src/{world.package}"), second])
    read = s.tool("read", "read_file", {"path": module.path}, module.text)
    command: dict[str, object] = {"command": f"python -m pytest -v {module.test_path} tests"}
    world.tests += 1
    test = f"\n\ndef {planted.test_name}():\n{planted.test}{planted.fails}"
    s.tool(
        "add_test",
        "edit_file",
        {"path": module.test_path, "old": "# end of file\n", "new": f"{test}\n\n# end of file\n"},
        f"{module.test_path}: 1 replacement\n{test}",
    )
    s.tool("run", "bash", command, pytest_run(world, module, s.now, planted)[0])
    s.edit("fix", module, planted.before + planted.wrong, planted.before + planted.right)
    text, passed = pytest_run(world, module, s.now)
    ran = s.tool("again", "bash", command, text)
    committed = commit_change(s, module, f"{ticket}: {module.facts['Role']}.{planted.method}", "commit")
    s.says("bug_done")

    s.offer("multi_hop", "q_owner", s.person_answers(module.owner), [asked, where, read])
    s.offer("single_hop", "q_passed", [str(passed), f"{passed} passed"], [ran])
    s.offer("single_hop", "q_commit", [world.commits[-1].id], [committed])
    s.offer("temporal", "q_since", s.day(seen), [asked])
    days = (world.commits[-1].when.date() - seen.date()).days
    answers = [f"{days} 天", f"{days}天", str(days)] if zh else [f"{days} days", str(days)]
    s.offer("temporal", "q_days", answers, [asked, committed], computed=True)
    if s.fixed:
        other, shown = one(s.rng, s.fixed[-30:])
        s.facts["other"] = other
        s.offer("temporal", "q_first", [other], [shown, committed])
    s.fixed.append((ticket, committed))
    offer_constant(s, module, one(s.rng, module.constants), read)
    s.offer("single_hop", "q_code", [module.code], [read, where])
    s.offer("single_hop", "q_runbook", [module.runbook], [read])


def change(s: Session) -> None:
    """A constant gets a new value; some get one more than once."""
    again = bool(s.changed) and s.rng.random() < 0.3
    if again:
        module, constant = one(s.rng, s.changed[-12:])
    else:
        module = some_module(s)
        constant = one(s.rng, module.constants)
    world, before, value = s.world, constant.value, other_value(s.rng, constant)
    s.look_at(module)
    s.look_at_constant(constant)
    s.who()
    s.facts |= {"new": str(value), "reason": one(s.rng, s.reasons)}
    asked = s.user("change_again" if again else "change")
    s.questions.forget(constant.name)
    _, read = s.both("both", [grep_for(s, module, constant.name, "."), read_file(s, module, f"{constant.name} =")])
    old, new = f"{constant.name} = {before}\n", f"{constant.name} = {value}\n"
    shown = diff(module.path, module.text, old, new)
    edited = s.edit("edit", module, old, new)
    constant.value = value
    s.tool("again", "bash", {"command": f"pytest -v {module.test_path}"}, pytest_run(world, module, s.now)[0])
    s.tool("", "bash", {"command": "git diff"}, shown)
    s.says("change_done")

    about = [constant.name]
    s.changed.append((module, constant))
    s.offer("updated_fact", "q_now", s.amount(constant, value), [asked, edited], about=about)
    s.offer("single_hop", "q_why", [s.facts["reason"]], [asked], about=about)
    if not again:
        s.offer("multi_hop", "q_rise", [str(abs(value - before))], [read, asked], about=about, computed=True)


def decide(s: Session) -> None:
    """A constant stays as it is, for a reason, and the decision is filed."""
    module = some_module(s)
    constant = one(s.rng, module.constants)
    s.look_at(module)
    s.look_at_constant(constant)
    person = s.who()
    world = s.world
    s.decided += 1
    number = f"D-{s.decided:03d}"
    s.facts |= {"reason": one(s.rng, s.reasons), "decision": number}
    asked = s.user("decide")
    text = decisions_page(world.package, s.decisions)
    page: ToolUse = ("read_file", {"path": "docs/decisions.md"}, text)
    s.both("both", [page, read_file(s, module, f"{constant.name} =")])
    entry = f"## {number} Keep {constant.name} at {constant.value} ({s.now:%Y-%m-%d})\n\n"
    reason, name = s.facts["reason"], world.people[person][1]
    entry += f"与 {name} 商定：{reason}。\n" if s.chinese else f"Agreed with {name}, because {reason}.\n"
    s.tool(
        "edit",
        "edit_file",
        {"path": "docs/decisions.md", "old": "<!-- next -->", "new": f"{entry}\n<!-- next -->"},
        f"docs/decisions.md: 1 replacement, lines {text.count(chr(10))}-{text.count(chr(10)) + 4}\n{entry}",
    )
    s.decisions.append(entry)
    committed = commit_change(s, module, f"{number}: why {constant.name} stays", "commit")
    s.says("decide_done")

    s.offer("single_hop", "q_decision", [number], [committed], about=[constant.name])
    s.offer("single_hop", "q_keep", [s.facts["reason"]], [asked], about=[constant.name])
    decided = [s.now.strftime("%Y-%m-%d"), *s.day(s.now)]
    s.offer("temporal", "q_decided", list(dict.fromkeys(decided)), [asked, committed], about=[constant.name])


def feature(s: Session) -> None:
    """A method is added to a module, after a look at another one."""
    model = s.world.known() if s.world.modules else s.world.fresh()
    module = s.world.fresh()
    name, body = new_method(s.rng, s.world.domain, module, s.chinese)
    ticket = s.world.ticket()
    s.look_at(module)
    s.who()
    s.facts |= {"method": name, "model": model.name, "ticket": ticket}
    asked = s.user("feature")
    whole: ToolUse = ("read_file", {"path": module.path}, module.text)
    _, read = s.both("both", [read_file(s, model, f"class {model.facts['Role']}:"), whole])
    anchor = next(line for line in module.text.split("\n") if line.startswith("    def ") and "__init__" not in line)
    s.edit("edit", module, anchor, f"{body}\n{anchor}")
    s.world.tests += 2
    text, passed = pytest_run(s.world, module, s.now)
    ran = s.tool("again", "bash", {"command": f"pytest -v {module.test_path} tests/{module.area}"}, text)
    status = f"On branch {ticket.lower()}\nChanges not staged for commit:\n\tmodified:   {module.path}\n"
    s.tool("", "bash", {"command": "git status"}, f"{status}\tmodified:   {module.test_path}\n")
    committed = commit_change(s, module, f"{ticket}: add {name} to {module.name}", "commit")
    s.says("feature_done")

    s.offer("single_hop", "q_commit", [s.world.commits[-1].id], [committed])
    s.offer("multi_hop", "q_owner_feature", s.person_answers(module.owner), [asked, read])
    s.offer("single_hop", "q_total", [str(passed), f"{passed} passed"], [ran])
    s.fixed.append((ticket, committed))
    offer_constant(s, module, one(s.rng, module.constants), read)


def refactor(s: Session) -> None:
    """A method gets another name."""
    module = some_module(s)
    before = one(s.rng, [name for name in module.methods if f"def {name}(self" in module.text])
    s.renamed += 1
    after = f"{before.split('_')[0]}_{one(s.rng, _NEW_NAMES)}_{module.thing}"
    if after in module.methods:
        after = f"{after}_{s.renamed}"
    s.look_at(module)
    s.who()
    s.facts |= {"before": before, "after": after, "ticket": s.world.ticket()}
    asked = s.user("refactor")
    s.both("both", [grep_for(s, module, before, "."), read_file(s, module, f"def {before}(")])
    edited = s.edit("edit", module, f"def {before}(", f"def {after}(")
    module.methods[module.methods.index(before)] = after
    s.tool(
        "",
        "edit_file",
        {"path": module.test_path, "old": f".{before}(", "new": f".{after}("},
        f"{module.test_path}: {2 + int(s.rng.random() * 5)} replacements of .{before}(",
    )
    s.tool("again", "bash", {"command": f"pytest -v {module.test_path}"}, pytest_run(s.world, module, s.now)[0])
    stat = f" {module.path} | 2 +-\n {module.test_path} | 6 +++---\n 2 files changed, 4 insertions(+), 4 deletions(-)"
    s.tool("", "bash", {"command": "git diff --stat"}, stat)
    s.says("refactor_done")

    s.questions.forget(f"{module.name}.{before}")
    s.offer("updated_fact", "q_name", [after], [asked, edited], about=[f"{module.name}.{after}"])


def history(s: Session) -> None:
    """Who changed what: the log and one commit of it."""
    module = some_module(s)
    world = s.world
    commit = world.commit(
        max(world.commits[-1].when, s.now - timedelta(hours=3)), world.invented_subject(module), module
    )
    s.look_at(module)
    s.who()
    s.facts |= {"hash": commit.id, "subject": commit.subject}
    s.user("history")
    count = 24 + int(s.rng.random() * 30)
    log, _ = s.both(
        "both",
        [
            ("bash", {"command": f"git log -n {count} --date=iso"}, git_log(world, count)),
            ("bash", {"command": f"git show {commit.id}"}, git_show(world, commit, module)),
        ],
    )
    name, arguments, text = read_file(s, module, "class ")
    read = s.tool("read", name, arguments, text)
    s.tool("", *grep_for(s, module, module.code, "src"))
    s.says("history_done")

    other = one(s.rng, world.commits[-count:-1])
    for shown in (commit, other):
        s.facts["hash"] = shown.id
        s.offer("temporal", "q_when", [f"{shown.when:%Y-%m-%d}", *s.day(shown.when)[:2]], [log])
        s.offer("single_hop", "q_author", s.person_answers(shown.author), [log])
    if module.runbook in text:
        s.offer("single_hop", "q_runbook", [module.runbook], [read])


def ops(s: Session) -> None:
    """A service gets another port on staging."""
    module, world = some_module(s), s.world
    shown = [other for other in world.modules[-12:] if other is not module] + [module]
    shown += [world.fresh() for _ in range(max(0, 3 - len(shown)))]
    old, new = world.ports[module.name], world.port()
    s.look_at(module)
    s.who()
    s.facts |= {"port": str(new), "old_port": str(old)}
    asked = s.user("ops")
    file = shell("cat deploy/staging.toml", staging(world, shown))
    log = shell(f"tail -n 80 /var/log/{module.name}.log", log_tail(world, module, s.now))
    config, _ = s.both("both", [file, log])
    old_text, new_text = f"[services.{module.name}]\nport = {old}", f"[services.{module.name}]\nport = {new}"
    world.ports[module.name] = new
    edited = s.tool(
        "edit",
        "edit_file",
        {"path": "deploy/staging.toml", "old": old_text, "new": new_text},
        f"deploy/staging.toml: 1 replacement\n{new_text}",
    )
    health = f'{{"service": "{module.name}", "status": "up", "uptime_s": {int(s.rng.random() * 90)}}}'
    s.tool("", "bash", {"command": f"curl -s staging:{new}/health"}, health)
    constant = one(s.rng, module.constants)
    read = s.tool("read", *read_file(s, module, f"{constant.name} ="))
    s.says("ops_done")

    s.questions.forget(f"port of {module.name}")
    s.offer("updated_fact", "q_port", [str(new)], [asked, edited], about=[f"port of {module.name}"])
    s.look_at_constant(constant)
    about = [constant.name, f"port of {module.name}"]
    s.offer("multi_hop", "q_port_const", s.amount(constant, constant.value), [edited, read], about=about)
    neighbour = next(each for each in shown if each is not module)
    s.facts["name"] = neighbour.name
    s.offer("single_hop", "q_port", [str(world.ports[neighbour.name])], [config], about=[f"port of {neighbour.name}"])


def deck(rng: Random) -> list[Callable[[Session], None]]:
    """The next turns, shuffled: bugs and changes twice as often as the rest."""
    turns: list[Callable[[Session], None]] = [bug, change, feature, ops, history, decide, refactor, bug, change]
    rng.shuffle(turns)
    return turns


_NEW_NAMES = ("one", "checked", "due", "safely", "known", "current", "whole", "next", "single", "valid", "raw", "local")
