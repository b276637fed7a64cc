"""`ctxbench lab check-reader`: what was read of recordings, beside what stands in their files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .arguments import FormatOption, JsonOption

if TYPE_CHECKING:
    from ctxbench.scenarios.coverage import TextCoverage
    from ctxbench.scenarios.model import Conversation
    from ctxbench.scenarios.read import Batch
    from ctxbench.scenarios.source import Problems

_COUNTED = ("conversations", "messages", "calls", "usage", "cache_reads", "compactions")
_COUNTS = {"reasoning": "reasoning tokens", "audio_input": "audio input", "audio_output": "audio output"}
"""Fields of `Usage` that some providers report, and what the table calls them."""
_CALL_FIELDS = {
    "request_id": "request id",
    "tier": "service tier",
    "requested": "other model asked for",
    "first_token": "first token",
    "error": "error text",
    "edits": "context edits",
}
"""The same of `Call`."""
_MOST_KEYS = 12
"""Key paths of unread text that are printed."""


def check_reader(
    files: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Recordings: files or folders.")],
    form: FormatOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a reader makes of recordings: counts, and the texts in their files that are in no message.

    Texts are compared, whatever the format: strings of 20 or more characters with three or more words. Text that
    a format is known to keep and no model saw (diffs for the screen, scores) is counted apart, with the reason.
    """
    from ctxbench.scenarios.coverage import coverage
    from ctxbench.scenarios.errors import RunError
    from ctxbench.scenarios.read import find, format_name
    from ctxbench.scenarios.source import Problems

    from .output import print_json, print_tables
    from .progress import counting
    from .streams import report_ignored, say

    problems = Problems()
    batches = find(files, problems, form)
    rows: list[dict[str, Any]] = []
    with counting(len(batches), "recordings") as done:
        for batch in batches:
            counts: Counter[str] = Counter()
            compared = coverage(batch, _conversations(batch, counts, problems), Problems())
            names = [str(path) for path in batch.files]
            rows.append({"files": names, "format": format_name(batch.reader), **counts, **_text(compared)})
            done()
    report_ignored(problems.ignored, problems.notes)
    for error in problems.errors:
        say(f"left out: {error}")
    if not rows:
        raise RunError("no file of a known format is there: there is nothing to check")
    if as_json:
        print_json(rows)
    else:
        print_tables(_tables(rows))


def _conversations(batch: Batch, counts: Counter[str], problems: Problems) -> Iterator[Conversation]:
    """Yield the conversations of a batch, and count what they have."""
    from ctxbench.scenarios.read import read

    counts.update(dict.fromkeys((*_COUNTED, *_COUNTS, *_CALL_FIELDS), 0))
    for conversation in read([batch], problems):
        calls = [message.call for message in conversation.messages if message.call is not None]
        usages = [call.usage for call in calls if call.usage is not None]
        counts["conversations"] += 1
        counts["messages"] += len(conversation.messages)
        counts["calls"] += sum(1 for _ in conversation.calls())
        counts["usage"] += len(usages)
        counts["cache_reads"] += sum(bool(usage.cache_read) for usage in usages)
        counts["compactions"] += len(conversation.compactions)
        counts.update({name: sum(getattr(usage, name) is not None for usage in usages) for name in _COUNTS})
        counts.update({name: sum(getattr(call, name) not in ("", None, ()) for call in calls) for name in _CALL_FIELDS})
        yield conversation


def _text(compared: TextCoverage) -> dict[str, Any]:
    return {
        "text_read": compared.share if compared.shown else None,
        "characters": compared.characters,
        "not_read": compared.missing,
        "not_shown": compared.unshown,
        "keys_not_looked_at": compared.unread,
    }


def _tables(rows: list[dict[str, Any]]) -> list[Any]:
    from ctxbench.reports.render import Table, percent

    shown = tuple(
        (
            Path(row["files"][0]).name + (f" and {len(row['files']) - 1} more" if len(row["files"]) > 1 else ""),
            row["format"],
            *(f"{row[name]:,}" for name in _COUNTED),
            "–" if row["text_read"] is None else percent(row["text_read"]),
        )
        for row in rows
    )
    heads = (
        "file",
        "format",
        "conversations",
        "messages",
        "calls",
        "with usage",
        "cache reads",
        "compactions",
        "text read",
    )
    note = "– where the file is no JSON: its text is not compared. --json has every key."
    tables = [Table("What was read?", heads, shown, (note,), names=2)]
    fields = {name: head for name, head in (_COUNTS | _CALL_FIELDS).items() if any(row[name] for row in rows)}
    if fields:
        reported = tuple(
            (*cells[:2], *(f"{row[name]:,}" for name in fields)) for cells, row in zip(shown, rows, strict=True)
        )
        tables.append(
            Table(
                "Of how many calls did the provider say more?", ("file", "format", *fields.values()), reported, names=2
            )
        )
    missing = _sums(rows, "not_read")
    if missing:
        looked = {key for row in rows for key in row["not_read"]} - {
            k for row in rows for k in row["keys_not_looked_at"]
        }
        keys = tuple((name, f"{number:,}", "in part" if name in looked else "never") for name, number in missing)
        tables.append(
            Table(
                "Under which keys is text that no message has?", ("key", "characters", "looked at"), keys[:_MOST_KEYS]
            )
        )
    if unshown := _sums(rows, "not_shown"):
        reasons = tuple((reason, f"{number:,}") for reason, number in unshown)
        tables.append(Table("Which text did no model see?", ("what", "characters"), reasons))
    return tables


def _sums(rows: list[dict[str, Any]], name: str) -> list[tuple[str, int]]:
    """Return characters by key or reason over all rows, most first."""
    sums: Counter[str] = Counter()
    for row in rows:
        sums.update(row[name])
    return sums.most_common()
