"""The rows that figures by conversation are made of: `harness.steps.rows_of`."""

from ..harness.steps import rows_of

__all__ = ["rows_of"]
