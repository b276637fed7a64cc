"""Bills by conversation, of a run of any size: made some shards at a time, and stored beside the run (`derived.py`).

    conversation_bills(load("runs/standard"), [Scheme("claude-sonnet-5")])

Whoever compares runs needs a row per conversation and strategy. These are the rows of `Billed.conversations`, which
has all requests of a run in memory, and reads them again for every command.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import pandas as pd
import pyarrow as pa

from ctxbench.metrics.cache.rules import DOCUMENT, RULES, STORED, rules_of
from ctxbench.metrics.media import media_rule
from ctxbench.metrics.prices import BUNDLED, Prices

from ..folder.derived import origin_of, read_derived, write_derived
from ..folder.run import KEYS, Run
from .bill import SUMS, bill, check_prices
from .pieces import over_pieces
from .requests import RunRequests
from .simulation import Scheme

_COLUMNS = (*KEYS, "calls", *SUMS, "base", "break_even")


def conversation_bills(run: Run, schemes: Sequence[Scheme], prices: Prices = BUNDLED) -> pd.DataFrame:
    """Return the rows of `Billed.conversations` for a run under some schemes, the offline optimum not among them.

    Raises RunError for a model whose price is not known.
    """
    check_prices(schemes, prices)
    origin = origin_of(run)
    names = {scheme: _name(scheme, prices) for scheme in dict.fromkeys(schemes)}
    stored = {scheme: read_derived(run, name, _COLUMNS, origin) for scheme, name in names.items()}
    frames = {scheme: table.to_pandas() for scheme, table in stored.items() if table is not None}
    if missing := [scheme for scheme in names if scheme not in frames]:
        made = _bills(run, missing, prices)
        for scheme, frame in zip(missing, made, strict=True):
            write_derived(run, names[scheme], pa.Table.from_pandas(frame, preserve_index=False), origin)
            frames[scheme] = frame
    whole = [_described(frames[scheme], scheme) for scheme in schemes]
    return pd.concat(whole, ignore_index=True) if whole else pd.DataFrame(columns=[*_COLUMNS])


def _bills(run: Run, schemes: Sequence[Scheme], prices: Prices) -> list[pd.DataFrame]:
    """Bill a run some shards at a time, and return the rows under each scheme."""
    requests = RunRequests(run)
    for scheme in schemes:
        requests.token_factors(scheme.model)  # estimated once, and not in each process
    pieces = over_pieces(_bills_of_piece, list(requests.pieces()), schemes, prices)
    return [_joined(frames) for frames in zip(*pieces, strict=True)]


def _bills_of_piece(requests: RunRequests, schemes: Sequence[Scheme], prices: Prices) -> list[pd.DataFrame]:
    billed = bill(requests, schemes, prices)
    return [billed.conversations_under(scheme)[[*_COLUMNS]] for scheme in schemes]


def _joined(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the rows of all pieces. Names are categories in the order in which they come, as in a whole table."""
    if len(frames) == 1:
        return frames[0]
    rows = pd.concat([frame.astype(dict.fromkeys(KEYS, str)) for frame in frames], ignore_index=True)
    kinds = {key: pd.CategoricalDtype(list(dict.fromkeys(rows[key]))) for key in KEYS}
    return rows.astype(kinds)


def _described(frame: pd.DataFrame, scheme: Scheme) -> pd.DataFrame:
    """Return the rows with the model and the placement of their scheme, where `Billed.conversations` has them."""
    rows = frame.assign(model=scheme.model, placement=scheme.placement)
    return rows[[*KEYS, "model", "placement", *_COLUMNS[len(KEYS) :]]]


def _name(scheme: Scheme, prices: Prices) -> str:
    """Return the name of a scheme's stored rows: those under other prices or rules are not found."""
    plain = re.sub(r"[^\w.-]", "_", f"conversations-{scheme.model}-{scheme.placement}")[:100]
    rules = [rule.rules for every in (RULES, STORED, DOCUMENT) for rule in rules_of(scheme.model, every)]
    identity = (scheme, rules, media_rule(scheme.model), prices.tariff(scheme.model))
    return f"{plain}-{hashlib.sha256(repr(identity).encode()).hexdigest()[:8]}"
