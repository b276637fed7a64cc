"""Which encoding counts for which model: its own where that is published and installed, else a common one."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...scenarios.errors import MissingExtra
from ..tokens import ENCODINGS, TokenCounter, encoding_of

OTHERWISE = "o200k_base"


@dataclass(slots=True)
class Counters:
    """Token counters by model. With an `encoding` that one counts for all."""

    encoding: str | None = None
    used: dict[str, str] = field(default_factory=dict)
    """The encoding of each model that was asked for."""
    lacking: dict[str, str] = field(default_factory=dict)
    """Of models whose own encoding is not installed, what to do."""
    _made: dict[str, TokenCounter] = field(default_factory=dict)

    def of(self, model: str) -> TokenCounter:
        """Counts for a model."""
        if model not in self.used:
            self.used[model] = self._encoding(model)
        return self._counter(self.used[model])

    def _encoding(self, model: str) -> str:
        wanted = self.encoding or encoding_of(model)
        if wanted is None or (self.encoding is None and wanted not in ENCODINGS):
            return OTHERWISE
        try:
            self._counter(wanted)
        except MissingExtra as missing:
            if self.encoding is not None:
                raise
            self.lacking[model] = str(missing)
            return OTHERWISE
        return wanted

    def _counter(self, encoding: str) -> TokenCounter:
        if encoding not in self._made:
            self._made[encoding] = TokenCounter(encoding)
        return self._made[encoding]
