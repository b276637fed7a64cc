"""Why a call to a provider failed, in one line without secrets, and whether to try again.

passes with time      408, 409, 425, 429, 5xx, no answer in time, no connection, an answer that is none
does not              400, 422 and other 4xx; 401, 403, 404: nothing will work with this key or name
"""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

GIVEN_UP = "was given up for the rest of the run"
"""In the words of every call that is not made because the calls before it failed."""
STRIKES = 2
"""A call whose every try failed is one, a connection that could not be made two, too many requests (429) none: that
provider is there. A call with five tries takes 15 s, and a run makes thousands."""
_PASSING = {408, 409, 425, 429}
_SHOWN = 200
_SECRETS = re.compile(
    r"(?<![^\W_])(sk|pk|key|gsk|xai|AIza)[-_][\w\-]{6,}|AIza[\w\-]{10,}|Bearer\s+\S+|(?<=://)[^/\s@]+@"
    r"|(?<=[?&])[\w\-]*(key|token|secret|password|signature)=[^\s&#]+",
    re.IGNORECASE,
)
_PREFIXES = re.compile(r"^((litellm\.)?\w*(Error|Exception|Timeout)\s*[:\-]\s*)+")


class Failure(Exception):
    """A call that got no usable answer."""

    def __init__(
        self,
        why: str,
        *,
        passing: bool = False,
        final: bool = False,
        after: float | None = None,
        strikes: int | None = None,
    ) -> None:
        super().__init__(why)
        self.passing = passing
        """Trying again may help."""
        self.final = final
        """No other call of this model can work either."""
        self.after = after
        """Seconds that the provider asks to wait."""
        self.strikes = int(passing) if strikes is None else strikes
        """Of the `STRIKES` of calls in a row after which the model is not asked any more."""


def failure_of(error: Exception, timeout: float) -> Failure:
    """What an exception of litellm means."""
    status, text = getattr(error, "status_code", None), shown(str(error))
    if isinstance(error, TimeoutError) or type(error).__name__ == "Timeout":
        return Failure(f"no answer within {timeout:g} s", passing=True)
    if status in (401, 403) or "missing credentials" in text.lower():
        what = f"the provider refused the key ({status})" if status in (401, 403) else "there is no key"
        return Failure(f"{what}: set its provider's variable in the environment (OPENAI_API_KEY …)", final=True)
    if status == 404:
        return Failure(f"there is no such model at the provider, or the api base is wrong (404): {text}", final=True)
    if "insufficient_quota" in text:
        return Failure(f"the provider's account has no credit left ({status})", final=True)
    if "connection error" in text.lower():
        why = "the connection failed or broke off: is the provider, or the api base, reachable?"
        return Failure(why, passing=True, strikes=STRIKES if _not_connected(error) else 1)
    if status == 429:
        after = _retry_after(error)
        asked = "" if after is None else f", which asks to wait {after:g} s"
        return Failure(f"too many requests for the provider (429){asked}", passing=True, after=after, strikes=0)
    passing = status is None or status >= 500 or status in _PASSING
    return Failure(f"{text} ({status})" if status else text, passing=passing, after=_retry_after(error))


def _not_connected(error: BaseException | None) -> bool:
    """Whether a connection was never made (refused, an unknown host), which litellm says only in what caused it."""
    while error is not None:
        if type(error).__name__ == "ConnectError":
            return True
        error = error.__cause__ or error.__context__
    return False


def without_secrets(text: str) -> str:
    """Text with `***` for keys, for what is before the @ of an address, and for the values of keys' variables."""
    for name, value in os.environ.items():
        if len(value) >= 8 and re.search(r"KEY|TOKEN|SECRET|PASSWORD", name, re.IGNORECASE):
            text = text.replace(value, "***")
    return _SECRETS.sub("***", text)


def shown(text: str) -> str:
    """A message as it may be shown: one line, printable, not long, without litellm's names and anything secret."""
    text = without_secrets(" ".join(text.partition("Traceback (most recent")[0].split()))
    text = "".join(char if char.isprintable() else "·" for char in _PREFIXES.sub("", text))
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def _retry_after(error: Any) -> float | None:
    """The header Retry-After, in seconds from now; it is given as a number or as a date."""
    headers = getattr(error, "litellm_response_headers", None) or getattr(
        getattr(error, "response", None), "headers", {}
    )
    value = {str(name).lower(): str(text) for name, text in dict(headers or {}).items()}.get("retry-after", "")
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        when = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (when - datetime.now(UTC)).total_seconds()) if when.tzinfo else None
