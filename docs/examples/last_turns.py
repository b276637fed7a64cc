"""A plain function, as other libraries have them: a list of message dicts in, a list of message dicts out."""


def last_turns(messages, turns: int = 3):
    """Return the system messages and the last `turns` turns."""
    users = [at for at, message in enumerate(messages) if message["role"] == "user"]
    start = users[-turns] if len(users) >= turns else 0
    return [message for message in messages[:start] if message["role"] == "system"] + messages[start:]
