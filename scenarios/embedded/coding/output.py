"""What the coding scenario's tools print: pytest, git, grep, logs, configuration files. Always English."""

from __future__ import annotations

from datetime import datetime, timedelta

from ..wording import one
from .module import Module, Planted
from .words import ROLES
from .world import Commit, World

_TAILS = (
    "empty",
    "twice",
    "on_month_end",
    "keeps_order",
    "without_text",
    "at_the_limit",
    "after_restart",
    "under_lease",
    "refuses_unknown",
    "rounds_once",
    "is_idempotent",
    "old_rows",
    "one_row",
    "many_rows",
    "logs_once",
)


def pytest_run(world: World, module: Module, now: datetime, failing: Planted | None = None) -> tuple[str, int]:
    """A verbose run of a module's tests and its neighbours'; returns the text and how many passed."""
    rng = world.rng
    tests = [(module.test_path, name) for name in _test_names(world, module)]
    for _ in range(2 + int(rng.random() * 3)):
        thing, (role, _zh, area) = one(rng, world.domain.things)[0], one(rng, ROLES)
        path = f"tests/{area}/test_{thing}_{role}.py"
        names = (f"test_{one(rng, world.domain.verbs)}_{one(rng, world.domain.texts)}_{tail}" for tail in _tails(world))
        tests += [(path, name) for name in names]
    if failing is not None:
        tests.insert(1 + int(rng.random() * 6), (module.test_path, failing.test_name))
    rest = world.tests - len(tests)
    seconds = round(3 + rng.random() * 40, 2)
    lines = [
        "============================= test session starts ==============================",
        f"platform linux -- Python 3.11.{4 + len(world.package) % 6}, pytest-8.3.3, pluggy-1.5.0",
        f"rootdir: /srv/checkout/{world.package}",
        "configfile: pyproject.toml",
        f"plugins: xdist-3.6.1, {world.package}-fixtures-{world.tests // 50}.{world.tests % 7}",
        f"collected {len(tests) + rest} items",
        "",
    ]
    for at, (path, name) in enumerate(tests, 1):
        verdict = "FAILED" if failing is not None and name == failing.test_name else "PASSED"
        lines.append(f"{path}::{name} {verdict} [{100 * at // world.tests:3d}%]")
    while rest > 0:
        thing, (role, _zh, area) = one(rng, world.domain.things)[0], one(rng, ROLES)
        dots = min(rest, 4 + int(rng.random() * 30))
        rest -= dots
        lines.append(f"tests/{area}/test_{thing}_{role}_more.py {'.' * dots} [{100 - 100 * rest // world.tests:3d}%]")
    if failing is None:
        lines += [
            "",
            f"============================= {world.tests} passed in {seconds}s ==============================",
        ]
        return "\n".join(lines), world.tests
    lines += _failure(world, module, now, failing)
    lines.append(f"======================== 1 failed, {world.tests - 1} passed in {seconds}s ========================")
    return "\n".join(lines), world.tests - 1


def _test_names(world: World, module: Module) -> list[str]:
    names = [f"test_{method}" for method in module.methods]
    return names + [f"test_{one(world.rng, module.methods)}_{tail}" for tail in _tails(world)]


def _tails(world: World) -> list[str]:
    return world.rng.sample(_TAILS, 3 + int(world.rng.random() * 8))


def _failure(world: World, module: Module, now: datetime, failing: Planted) -> list[str]:
    line = 20 + int(world.rng.random() * 300)
    at = module.text[: module.text.index(failing.before + failing.wrong)].count("\n") + failing.before.count("\n") + 1
    title = f" {failing.test_name} "
    shown = failing.test.rstrip("\n").split("\n") + failing.fails.rstrip("\n").split("\n")
    return [
        "",
        "=================================== FAILURES ===================================",
        f"{title:_^80}",
        "",
        f"    def {failing.test_name}():",
        *(f"    {text}" for text in shown[:-1]),
        f">   {shown[-1]}",
        f"E   {failing.error}",
        "",
        f"{module.test_path}:{line}: {failing.error.split(':')[0].split()[0]}",
        "",
        f"{module.path}:{at}: in {failing.method}",
        *(f"    {text}" for text in failing.wrong.rstrip("\n").split("\n")),
        "------------------------------ Captured log call -------------------------------",
        *(log_line(world, module, now + timedelta(milliseconds=137 * number)) for number in range(2)),
        "=========================== short test summary info ============================",
        f"FAILED {module.test_path}::{failing.test_name} - {failing.error}",
    ]


def log_line(world: World, module: Module, when: datetime) -> str:
    """One line of a service's log."""
    rng, domain = world.rng, world.domain
    level = one(rng, ("INFO", "INFO", "INFO", "DEBUG", "WARNING", "WARNING", "ERROR"))
    thing, verb = one(rng, domain.things)[0], one(rng, domain.verbs)
    key = f"{thing[:2].upper()}-{1000 + int(rng.random() * 9000)}"
    took, number = int(rng.expovariate(1 / 180)), int(rng.random() * 9000)
    what = one(
        rng,
        (
            f"{verb} {key} took={took}ms {one(rng, domain.numbers)}={number}",
            f"{thing}.{verb}: retry {1 + number % 5} for {key} after {took * 3}ms",
            f"{key} is {one(rng, domain.states)}, {one(rng, domain.texts)}={number:05d}",
            f"peer answered {one(rng, ('200', '202', '409', '429', '503', '504'))} to {verb} of {key} ({took}ms)",
            f"lease on {thing}:{key} released after {took}ms, {number % 40} waiting",
            f"{number % 700} {thing} rows {one(rng, domain.states)}, {number % 13} left out",
        ),
    )
    stamp = when.strftime("%Y-%m-%dT%H:%M:%S")
    return f"{stamp}.{number % 1000:03d}Z {level:7} {world.package}.{module.area}.{module.name} {what}"


def log_tail(world: World, module: Module, now: datetime) -> str:
    """The last minutes of the log."""
    count = 25 + int(world.rng.random() * 45)
    when, lines = now - timedelta(minutes=25), []
    for _ in range(count):
        when += timedelta(seconds=world.rng.random() * 1500 / count)
        lines.append(log_line(world, module, when))
    return "\n".join(lines)


def git_log(world: World, count: int) -> str:
    """`git log`, newest first."""
    shown = world.commits[-count:][::-1]
    return "\n".join(
        f"{commit.id} {commit.when:%Y-%m-%d %H:%M} {world.people[commit.author][1]:<18} {commit.subject}"
        for commit in shown
    )


def git_show(world: World, commit: Commit, module: Module) -> str:
    """`git show`: a small invented change to the module's tests."""
    rng = world.rng
    thing, text, number = module.thing, one(rng, world.domain.texts), one(rng, world.domain.numbers)
    verb, line = one(rng, world.domain.verbs), 12 + int(rng.random() * 220)
    low, high = 2 + int(rng.random() * 50), 60 + int(rng.random() * 900)
    author = world.people[commit.author][1]
    return "\n".join(
        [
            f"commit {commit.id}{rng.getrandbits(132):033x}",
            f"Author: {author} <{author.lower().replace(' ', '.')}@{world.package}.example>",
            f"Date:   {commit.when:%a %b %d %H:%M:%S %Y +0000}",
            "",
            f"    {commit.subject}",
            "",
            f"diff --git a/{module.test_path} b/{module.test_path}",
            f"index {rng.getrandbits(28):07x}..{rng.getrandbits(28):07x} 100644",
            f"--- a/{module.test_path}",
            f"+++ b/{module.test_path}",
            f"@@ -{line},6 +{line},9 @@ def test_{verb}_{text}():",
            f"     rows = [make_{thing}({number}=at) for at in range({low})]",
            f"-    assert make_{module.role}().{verb}(rows) == {high}",
            f"+    rows.append(make_{thing}({text}='', {number}={high}))",
            f"+    result = make_{module.role}().{verb}(rows)",
            f"+    assert result == {high + low}, '{text} must not matter here'",
            f"+    assert len(rows) == {low + 1}",
            "",
        ]
    )


def edit_result(path: str, text: str, new: str) -> str:
    """What `edit_file` answers: the place, with two lines around it."""
    at = text.index(new)
    first = text[:at].count("\n") + 1
    last = first + max(new.rstrip("\n").count("\n"), 0)
    lines = text.split("\n")
    shown = (f"{number:5d}  {lines[number - 1]}" for number in range(max(1, first - 2), min(len(lines), last + 2) + 1))
    return f"{path}: 1 replacement, lines {first}-{last}\n" + "\n".join(shown)


def diff(path: str, before: str, old: str, new: str) -> str:
    """A unified diff of one replacement with three lines of context."""
    at = before.index(old)
    first = before[:at].count("\n")
    lines = before.split("\n")
    gone, come = old.rstrip("\n").split("\n"), new.rstrip("\n").split("\n")
    top = lines[max(0, first - 3) : first]
    bottom = lines[first + len(gone) : first + len(gone) + 3]
    start = max(0, first - 3) + 1
    sizes = f"@@ -{start},{len(top) + len(gone) + len(bottom)} +{start},{len(top) + len(come) + len(bottom)} @@"
    body = [*(f" {one}" for one in top), *(f"-{one}" for one in gone), *(f"+{one}" for one in come)]
    return "\n".join([f"--- a/{path}", f"+++ b/{path}", sizes, *body, *(f" {one}" for one in bottom)])


def grep(world: World, module: Module, pattern: str) -> str:
    """Where the pattern stands in the module, and a few places in other files."""
    hits = [f"{module.path}:{at}:{line}" for at, line in enumerate(module.text.split("\n"), 1) if pattern in line]
    rng = world.rng
    for _ in range(2 + int(rng.random() * 6)):
        thing, (role, _zh, area) = one(rng, world.domain.things)[0], one(rng, ROLES)
        line, verb = 5 + int(rng.random() * 380), one(rng, world.domain.verbs)
        where = one(rng, ("src/" + world.package, "tests"))
        name = f"{thing}_{role}.py" if where != "tests" else f"test_{thing}_{role}.py"
        text = one(
            rng,
            (
                f"# {verb}: {pattern} is handled by the {module.role}",
                f'assert "{pattern}" not in {thing}_log.text',
                f'"{pattern}": "{one(rng, world.domain.states)}",',
                f'log.debug("{thing}: {pattern} (%s)", {one(rng, world.domain.texts)})',
            ),
        )
        hits.append(f"{where}/{area}/{name}:{line}:    {text}")
    return "\n".join(hits)


def staging(world: World, modules: list[Module]) -> str:
    """deploy/staging.toml with a section for each of these modules."""
    lines = [f'project = "{world.package}"', 'stage = "staging"', f"revision = {world.tickets * 3}", ""]
    for module in modules:
        number = int(module.code.split("-")[1])  # a service keeps its settings from one look to the next
        lines += [
            f"[services.{module.name}]",
            f"port = {world.ports[module.name]}",
            f'node_pool = "{("amber", "birch", "cobalt", "dune", "ember")[number % 5]}-{number % 7}"',
            f"workers = {1 + number % 6}",
            f'health = "/health/{module.thing.replace("_", "-")}"',
            f'log_level = "{("info", "debug", "warning")[number % 3]}"',
            f'start_after = "{module.area}-{("base", "warmup", "migrations", "seed")[number % 4]}"',
            f"drain_seconds = {5 + number % 71}",
            "",
        ]
    return "\n".join(lines)
