"""The bill of a run: its requests rebuilt from the context log, provider caches simulated over them, and prices."""
