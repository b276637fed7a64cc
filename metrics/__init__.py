"""Measures: token counts, structural faults, figures over a run. Pure functions, no clock, no files."""
