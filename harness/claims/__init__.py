"""The design documents' claims, each measured on a run and given a verdict."""
