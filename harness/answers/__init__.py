"""Answers to the probes of a run, and their grades."""
