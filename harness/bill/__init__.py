"""The bill of a run: its requests rebuilt from the context log, provider caches simulated over them, and prices."""

from typing import Literal

CacheRules = Literal["recording", "latest", "stored", "document"]
"""Rules of the recording's date; the latest; those of content that the caller stores by the hour (Gemini); or those of
design document 000."""

MODELS = ("claude-sonnet-5", "gpt-5.6", "gemini-2.5-pro")
"""Models that a run is billed under besides the recorded one: three providers that cache by different rules."""
