"""Output of the coding agent's tools: pytest, git, grep, logs, configuration files. Always English."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from ..forms import load, one, say
from .repository import ROLES, Bug, Commit, Module, World

_FORMS = load(__package__, "output")


def pytest_run(world: World, module: Module, now: datetime, bug: Bug | None = None) -> tuple[str, int]:
    """Return a verbose run of a module's tests and its neighbours', and how many passed; the bug's test fails."""
    rng = world.rng
    names = [f"test_{method}" for method in module.methods]
    names += [f"test_{one(rng, module.methods)}_{ending}" for ending in _test_endings(world)]
    tests = [(module.test_path, name) for name in names]
    for _ in range(2 + int(rng.random() * 3)):
        thing, role = one(rng, world.domain.things)[0], one(rng, ROLES)
        path = f"tests/{role.area}/test_{thing}_{role.name}.py"
        tests += [
            (path, f"test_{one(rng, world.domain.verbs)}_{one(rng, world.domain.texts)}_{ending}")
            for ending in _test_endings(world)
        ]
    if bug is not None:
        tests.insert(1 + int(rng.random() * 6), (module.test_path, bug.test_name))
    rest = world.tests - len(tests)
    facts = {
        "package": world.package,
        "patch": str(4 + len(world.package) % 6),
        "release": f"{world.tests // 50}.{world.tests % 7}",
        "count": str(world.tests),
        "seconds": str(round(3 + rng.random() * 40, 2)),
    }
    lines = []
    for number, (path, name) in enumerate(tests, 1):
        verdict = "FAILED" if bug is not None and name == bug.test_name else "PASSED"
        lines.append(f"{path}::{name} {verdict} [{100 * number // world.tests:3d}%]")
    while rest > 0:
        thing, role = one(rng, world.domain.things)[0], one(rng, ROLES)
        dots = min(rest, 4 + int(rng.random() * 30))
        rest -= dots
        percent = 100 - 100 * rest // world.tests
        lines.append(f"tests/{role.area}/test_{thing}_{role.name}_more.py {'.' * dots} [{percent:3d}%]")
    facts["progress"] = "\n".join(lines)
    passes = world.tests
    if bug is not None:
        passes -= 1
        facts |= _failure(world, module, now, bug)
    facts["passed"] = str(passes)
    end = "pytest_passed" if bug is None else "pytest_failed"
    return f"{say(rng, _FORMS['pytest_start'][0], facts)}\n\n{say(rng, _FORMS[end][0], facts)}", passes


def _test_endings(world: World) -> list[str]:
    return world.rng.sample(_FORMS["test_endings"], 3 + int(world.rng.random() * 8))


def _failure(world: World, module: Module, now: datetime, bug: Bug) -> dict[str, str]:
    test_line = 20 + int(world.rng.random() * 300)
    line = module.text[: module.text.index(bug.before + bug.wrong)].count("\n") + bug.before.count("\n") + 1
    *setup, last = bug.test.rstrip("\n").split("\n")
    log = [log_line(world, module, now + timedelta(milliseconds=137 * number)) for number in range(2)]
    return {
        "title": f"{f' {bug.test_name} ':_^80}",
        "test": bug.test_name,
        "setup": "\n".join(f"    {text}" for text in setup),
        "last_line": last,
        "error": bug.error,
        "error_name": bug.error.split(":")[0].split()[0],
        "test_path": module.test_path,
        "test_line": str(test_line),
        "path": module.path,
        "line": str(line),
        "method": bug.method,
        "wrong": "\n".join(f"    {text}" for text in bug.wrong.rstrip("\n").split("\n")),
        "log": "\n".join(log),
    }


def log_line(world: World, module: Module, when: datetime) -> str:
    """Return one line of a service's log."""
    rng, domain = world.rng, world.domain
    level = say(rng, _FORMS["log_level"][0], {})
    thing, verb = one(rng, domain.things)[0], one(rng, domain.verbs)
    key = f"{thing[:2].upper()}-{1000 + int(rng.random() * 9000)}"
    ms, number = int(rng.expovariate(1 / 180)), int(rng.random() * 9000)
    facts = {
        "thing": thing,
        "verb": verb,
        "key": key,
        "ms": str(ms),
        "long_ms": str(ms * 3),
        "number": str(number),
        "padded": f"{number:05d}",
        "attempt": str(1 + number % 5),
        "waiting": str(number % 40),
        "rows": str(number % 700),
        "rest": str(number % 13),
        "num": one(rng, domain.numbers),
        "state": one(rng, domain.states),
        "text": one(rng, domain.texts),
        "status": say(rng, _FORMS["http_status"][0], {}),
        "state2": one(rng, domain.states),
    }
    message = say(rng, one(rng, _FORMS["log_messages"]), facts)
    time = f"{when.isoformat(timespec='seconds')}.{number % 1000:03d}Z"
    return f"{time} {level:7} {world.package}.{module.area}.{module.name} {message}"


def log_tail(world: World, module: Module, now: datetime) -> str:
    """Return the last minutes of the log."""
    count = 25 + int(world.rng.random() * 45)
    when, lines = now - timedelta(minutes=25), []
    for _ in range(count):
        when += timedelta(seconds=world.rng.random() * 1500 / count)
        lines.append(log_line(world, module, when))
    return "\n".join(lines)


def git_log(world: World, count: int) -> str:
    """Return the newest commits, newest first."""
    return "\n".join(
        f"{commit.id} {commit.when:%Y-%m-%d %H:%M} {commit.author.git_name:<18} {commit.subject}"
        for commit in world.commits[-count:][::-1]
    )


def git_show(world: World, commit: Commit, module: Module) -> str:
    """Return a commit with a small invented change to the module's tests."""
    rng, domain = world.rng, world.domain
    author = commit.author.git_name
    facts = {
        "text": one(rng, domain.texts),
        "num": one(rng, domain.numbers),
        "verb": one(rng, domain.verbs),
        "line": str(12 + int(rng.random() * 220)),
    }
    low, high = 2 + int(rng.random() * 50), 60 + int(rng.random() * 900)
    facts |= {
        "commit": f"{commit.id}{rng.getrandbits(132):033x}",
        "author": author,
        "address": f"{author.lower().replace(' ', '.')}@{world.package}.example",
        "date": f"{commit.when:%a %b %d %H:%M:%S %Y}",
        "subject": commit.subject,
        "path": module.test_path,
        "old_blob": f"{rng.getrandbits(28):07x}",
        "new_blob": f"{rng.getrandbits(28):07x}",
        "thing": module.thing,
        "role": module.role,
        "low": str(low),
        "high": str(high),
        "sum": str(high + low),
        "rows": str(low + 1),
    }
    return say(rng, _FORMS["git_show"][0], facts) + "\n"


def git_commit(world: World, commit: Commit) -> str:
    """Return the output of `git commit` for a commit by the agent, which changes two files at a time."""
    facts = {
        "commit": commit.id,
        "subject": commit.subject,
        "time": f"{commit.when:%Y-%m-%d %H:%M:%S}",
        "insertions": str(3 + int(world.rng.random() * 30)),
        "deletions": str(1 + int(world.rng.random() * 6)),
    }
    return say(world.rng, _FORMS["git_commit"][0], facts)


def git_status(world: World, module: Module, branch: str) -> str:
    """Return the status when a module and its tests are changed."""
    facts = {"branch": branch, "path": module.path, "test_path": module.test_path}
    return say(world.rng, _FORMS["git_status"][0], facts) + "\n"


def git_diff_stat(world: World, module: Module) -> str:
    """Return the size of the change when something in a module has another name."""
    return say(world.rng, _FORMS["git_diff_stat"][0], {"path": module.path, "test_path": module.test_path})


def git_diff(path: str, before: str, old: str, new: str) -> str:
    """Return a unified diff of one replacement in the text `before`, with three lines of context."""
    first = before[: before.index(old)].count("\n")
    lines = before.split("\n")
    minus, plus = old.rstrip("\n").split("\n"), new.rstrip("\n").split("\n")
    top = lines[max(0, first - 3) : first]
    bottom = lines[first + len(minus) : first + len(minus) + 3]
    start = max(0, first - 3) + 1
    context = len(top) + len(bottom)
    sizes = f"@@ -{start},{context + len(minus)} +{start},{context + len(plus)} @@"
    body = [f"{sign}{line}" for sign, part in ((" ", top), ("-", minus), ("+", plus), (" ", bottom)) for line in part]
    return "\n".join([f"--- a/{path}", f"+++ b/{path}", sizes, *body])


def edit_file(path: str, text: str, new: str) -> str:
    """Return the result of `edit_file`: the place of `new` in the text, with two lines around it."""
    first = text[: text.index(new)].count("\n") + 1
    last = first + new.rstrip("\n").count("\n")
    lines = text.split("\n")
    view = (f"{number:5d}  {lines[number - 1]}" for number in range(max(1, first - 2), min(len(lines), last + 2) + 1))
    return f"{path}: 1 replacement, lines {first}-{last}\n" + "\n".join(view)


def grep(world: World, module: Module, pattern: str) -> str:
    """Return the lines of the module that have the pattern, and a few of other files."""
    hits = [f"{module.path}:{at}:{line}" for at, line in enumerate(module.text.split("\n"), 1) if pattern in line]
    rng, domain = world.rng, world.domain
    for _ in range(2 + int(rng.random() * 6)):
        thing, role = one(rng, domain.things)[0], one(rng, ROLES)
        line, verb = 5 + int(rng.random() * 380), one(rng, domain.verbs)
        folder = one(rng, (f"src/{world.package}", "tests"))
        name = f"test_{thing}_{role.name}.py" if folder == "tests" else f"{thing}_{role.name}.py"
        facts = {
            "verb": verb,
            "pattern": pattern,
            "role": module.role,
            "thing": thing,
            "state": one(rng, domain.states),
            "text": one(rng, domain.texts),
        }
        hits.append(f"{folder}/{role.area}/{name}:{line}:    {say(rng, one(rng, _FORMS['grep_hits']), facts)}")
    return "\n".join(hits)


def staging(world: World, modules: Sequence[Module]) -> str:
    """Return deploy/staging.toml with a section for each of these modules."""
    services = [_staging_service(world, module) + "\n" for module in modules]
    facts = {"package": world.package, "revision": str(world.tickets * 3), "services": "\n".join(services)}
    return say(world.rng, _FORMS["staging"][0], facts)


def _staging_service(world: World, module: Module) -> str:
    number = int(module.code.split("-")[1])  # a service keeps its settings from one look to the next
    pools, levels, steps = _FORMS["node_pools"], _FORMS["staging_levels"], _FORMS["start_steps"]
    facts = {
        "name": module.name,
        "port": str(world.ports[module.name]),
        "pool": f"{pools[number % len(pools)]}-{number % 7}",
        "workers": str(1 + number % 6),
        "endpoint": module.thing.replace("_", "-"),
        "level": levels[number % len(levels)],
        "area": module.area,
        "step": steps[number % len(steps)],
        "drain": str(5 + number % 71),
    }
    return say(world.rng, _FORMS["staging_service"][0], facts)


def staging_health(world: World, module: Module) -> str:
    """Return the answer of a service on staging to a health check."""
    facts = {"name": module.name, "uptime": str(int(world.rng.random() * 90))}
    return say(world.rng, _FORMS["staging_health"][0], facts)
