"""Validation of the cache models: predictions for recorded calls, compared with the usage that providers reported."""
