"""Scenario kind customer_service: a business customer and the agent of an online shop."""

from .generator import fleet, make

__all__ = ["fleet", "make"]
