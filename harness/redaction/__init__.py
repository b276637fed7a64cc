"""Recordings that can be shared: secrets and personal data replaced by placeholders, reversible with a local file."""
