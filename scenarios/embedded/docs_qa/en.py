"""What docs_qa says in English: names, kinds of settings, and how user and assistant talk."""

from __future__ import annotations

from . import en_content, en_operation
from .en_pages import PAGES
from .en_talk import TALK
from .pack import Aspect, Kind, Pack, Thing, chapters

_SYSTEM = """You are the documentation assistant of {company} for {product} (documentation set {version}).

Scope
- You answer questions of administrators, support staff and integration engineers about {product}.
- Every statement about a value, limit, step, permission or message must come from a passage found by `search_docs` \
in this conversation, or from what the user has told you about the own installation. Say which of the two it is.
- If the documentation does not say something, answer that it does not. Never guess a default.

Searching
- Call `search_docs` before you answer anything new. Use `mode="local"` for one named subject, `mode="naive"` for \
exact keys and error codes, and `mode="mix"` when a question touches several chapters. `top_k` between 5 and 50.
- Independent questions in one message may be searched in parallel.
- Do not search again for what you have already found; refer to it instead.

Answering
- Give the value first, then the key in backticks and the path of the page in brackets.
- Keep procedures as numbered lists and do not merge steps, since people refer to them by number.
- The documentation describes defaults. Values that the user changed at a site go before defaults for that site; \
always use the newest one that was reported.
- Dates in running text look like 4 March 2026.
- At most 250 words, unless a procedure needs more."""

_NAMES: dict[str, tuple[str, ...]] = {
    "products": ("Larkgate", "Corvane", "Tessalume", "Ordwell", "Brightmoor", "Quillhaven", "Stennford", "Averline"),
    "companies": ("Halvorsen Systems", "Pemberly Software", "Nordmark Digital", "Castellan Data", "Oakline Works"),
    "commands": ("lkg", "cvn", "tsl", "owl", "brm", "qhv"),
    "menus": ("Administration", "Control room", "Governance", "Operations", "Workspace settings"),
    "zones": ("eu1", "eu2", "north", "core", "dmz"),
    "roles": (
        "compliance officer",
        "platform administrator",
        "records manager",
        "site operator",
        "integration engineer",
        "workspace owner",
        "internal auditor",
        "data protection officer",
        "shift supervisor",
        "release coordinator",
        "business analyst",
        "service manager",
    ),
    "sites": ("Aldermouth", "Brenholm", "Castrum", "Dunleigh", "Esterfield", "Fjordby", "Grantsville", "Holmestead"),
    "teams": (
        "the support desk",
        "the platform team",
        "the storage group",
        "the night shift",
        "the migration squad",
        "the network team",
        "the release board",
        "the data office",
    ),
    "people": ("Ines", "Tobias", "Marguerite", "Devraj", "Saoirse", "Henrik", "Yolanda", "Piotr", "Nadia", "Wesley"),
    "decoys": (
        "fax gateway",
        "voice assistant",
        "blockchain notary",
        "mainframe bridge",
        "barcode kiosk",
        "loyalty module",
        "drone inventory",
        "smartwatch app",
        "payroll adapter",
        "visitor badge printer",
    ),
    "occasions": (
        "upgrade window",
        "restore drill",
        "data centre move",
        "certificate change",
        "load test",
        "training day",
    ),
}

_LABELS = {
    "found": "Found {count} passages for “{query}” (mode={mode}), best first.",
    "role": "the {role}",
    "graph": "Knowledge graph",
    "record": "record",
    "job": "job",
    "file": "file",
    "where": "{path} · score {score} · page updated {day}",
    "before": "Before you begin",
    "steps": "Steps",
    "open": "Open **{page}**.",
    "settings": "| Key | Default | Range | Since | Meaning |",
    "rights": "| Role | View all | View own | Create | Change | Remove |",
    "marks": "yes|no|on request",
    "trouble": "**{code} · {symptom}**\n\n- Cause: {cause}.\n- Remedy: {remedy}.",
    "version": "Version {version} ({day})",
    "entities": "| Entity | Type | Description |",
    "relations": "| From | To | Relation |",
    "new_default": "The default of `{key}` was changed from {old} to {new}.",
    "date": "{day} {month} {year}",
    "date_also": "{day} {month}|{month} {day}, {year}|{month} {day}",
    "months": "January|February|March|April|May|June|July|August|September|October|November|December",
    "ordinals": "first|second|third|fourth|fifth|sixth|seventh",
    "days": "days",
    "tool": "Searches the product documentation and returns passages with their paths.",
    "tool_query": "Keywords or a short question",
    "tool_mode": "local: one named subject; naive: exact keys and codes; mix: several chapters and the entity graph",
    "tool_top_k": "How many passages are considered",
}

_ASPECTS = (
    Aspect(
        "retention_days",
        "record file",
        (30, 45, 60, 90, 120, 180, 270, 365, 400, 540, 730),
        "days",
        ("days for which {things} are kept before the purge", "age in days at which {things} are purged by `{job}`"),
        "for how many days are {things} kept before they are purged?",
        "{things} are kept for {value} before they are purged",
    ),
    Aspect(
        "max_per_workspace",
        "record",
        (50, 75, 120, 200, 250, 300, 450, 600, 800, 1200, 1500, 2500),
        "",
        ("largest number of {things} in one workspace", "{things} allowed for each workspace before {role} is asked"),
        "how many {things} may one workspace hold?",
        "one workspace may hold {value} {things}",
    ),
    Aspect(
        "restore_hours",
        "record",
        (12, 18, 24, 36, 48, 60, 72, 96, 120, 168),
        "hours",
        ("hours in which a removed {thing} can be restored", "time for {role} to bring back a removed {thing}"),
        "for how many hours can a removed {thing} be restored?",
        "a removed {thing} can be restored for {value}",
    ),
    Aspect(
        "cache_minutes",
        "record",
        (2, 5, 8, 10, 15, 20, 30, 45, 60, 90),
        "minutes",
        ("minutes for which {things} are answered from the cache", "age at which a cached {thing} is read again"),
        "for how many minutes are {things} answered from the cache?",
        "{things} are answered from the cache for {value}",
    ),
    Aspect(
        "review_days",
        "record",
        (30, 60, 90, 120, 150, 180, 270, 365),
        "days",
        ("days after which {role} has to review {a_thing}", "interval at which {things} come up for review"),
        "after how many days does {a_thing} come up for review?",
        "{a_thing} comes up for review after {value}",
    ),
    Aspect(
        "timeout_minutes",
        "job",
        (4, 6, 10, 15, 25, 30, 40, 60, 75, 90, 120),
        "minutes",
        ("minutes after which {a_thing} is stopped", "running time granted to {a_thing} on `{host}` and its peers"),
        "after how many minutes is {a_thing} stopped?",
        "{a_thing} is stopped after {value}",
    ),
    Aspect(
        "batch_size",
        "job",
        (50, 100, 150, 200, 250, 400, 500, 750, 1000, 2000),
        "records",
        ("records that {a_thing} handles in one go", "size of one transaction of {a_thing}"),
        "how many records does {a_thing} handle in one batch?",
        "{a_thing} handles {value} in one batch",
    ),
    Aspect(
        "retry_limit",
        "job",
        (2, 3, 4, 5, 6, 7, 8, 9, 10, 12),
        "attempts",
        ("attempts before {a_thing} is given up", "how often {a_thing} is tried before {role} is told"),
        "after how many attempts is a failed {thing} given up?",
        "a failed {thing} is given up after {value}",
    ),
    Aspect(
        "retry_delay_seconds",
        "job",
        (15, 20, 30, 45, 60, 90, 120, 150, 180, 300),
        "seconds",
        ("pause in seconds before {a_thing} is tried again", "seconds between two attempts of the same {thing}"),
        "how many seconds pass before a failed {thing} is tried again?",
        "a failed {thing} is tried again after {value}",
    ),
    Aspect(
        "history_days",
        "job",
        (14, 21, 28, 30, 45, 60, 75, 90, 100, 150),
        "days",
        ("days for which the outcome of {a_thing} stays in the list", "age at which finished {things} leave the list"),
        "for how many days does a finished {thing} stay in the list?",
        "a finished {thing} stays in the list for {value}",
    ),
    Aspect(
        "max_size_mb",
        "file",
        (16, 25, 32, 48, 64, 80, 100, 150, 200, 256, 320, 512),
        "MB",
        ("largest size of {a_thing}; bigger ones are split", "megabytes above which {a_thing} is refused by `{host}`"),
        "how large may {a_thing} be?",
        "{a_thing} may be as large as {value}",
    ),
    Aspect(
        "keep_versions",
        "file",
        (3, 4, 5, 6, 7, 8, 10, 12, 15, 20),
        "versions",
        ("earlier versions kept of each {thing}", "number of older {things} beside the present one"),
        "how many earlier versions of {a_thing} are kept?",
        "{value} of each {thing} are kept",
    ),
    Aspect(
        "link_hours",
        "file",
        (4, 6, 8, 12, 16, 24, 36, 48, 72, 96),
        "hours",
        ("hours for which a download link to {a_thing} works", "life of a link that {role} sends for {a_thing}"),
        "for how many hours does a download link to {a_thing} work?",
        "a download link to {a_thing} works for {value}",
    ),
)


def _thing(name: str, kind: Kind) -> Thing:
    single, _, plural = name.partition("/")
    usual = single[:-1] + "ies" if single.endswith("y") and not single.endswith("ey") else single + "s"
    return Thing(single, plural or usual, single.replace(" ", "_").replace("-", "_"), kind)


def pack() -> Pack:
    """All of it."""
    text = en_content.CHAPTERS + en_operation.CHAPTERS
    return Pack("en", chapters(text, _thing, " "), _ASPECTS, _NAMES, {**PAGES, **TALK}, _LABELS, _SYSTEM, " ", 0)
