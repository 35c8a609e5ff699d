"""The binary under test, and small files for it."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import pytest
import safetensors.numpy

sys.path.insert(0, str(Path(__file__).parent))  # for cli_support: test folders are no packages

from cli_support import Cli, mixed_tensors


@pytest.fixture(scope="session")
def cli() -> Cli:
    beside_python = Path(sys.executable).parent / "gradwire"
    binary = os.environ.get("GRADWIRE_CLI", str(beside_python))
    if not Path(binary).exists():
        pytest.fail(f"no command line at {binary}: run `make build` or set GRADWIRE_CLI")
    return Cli(binary)


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """A new seed each time, printed; GRADWIRE_TEST_SEED repeats one."""
    value = int(os.environ.get("GRADWIRE_TEST_SEED") or random.SystemRandom().randrange(2**32))
    print(f"{request.node.name}: GRADWIRE_TEST_SEED={value}")
    return value


@pytest.fixture
def safetensors_file(tmp_path: Path) -> Path:
    path = tmp_path / "mixed.safetensors"
    safetensors.numpy.save_file(mixed_tensors(), path, metadata={"step": "7", "model": "né"})
    return path
