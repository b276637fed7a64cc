"""Personal assistant over months, as a scenario."""

from .generator import make

__all__ = ["make"]
