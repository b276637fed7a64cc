"""Scenarios that the project makes itself, with a seed: same seed, same bytes."""
