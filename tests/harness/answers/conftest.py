"""The server of the tests of models, and nothing of the user's environment."""

from tests.harness.models.conftest import _no_user, server

__all__ = ["_no_user", "server"]
