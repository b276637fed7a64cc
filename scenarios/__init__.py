"""Recordings: the model of a conversation, readers for recorded formats, embedded scenarios."""
