"""Fixtures of the tests under several ranks."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def ranks():
    """Two rank processes that all tests share."""
    from ranks import Ranks

    pair = Ranks(2)
    yield pair
    pair.close()
