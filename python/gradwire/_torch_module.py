"""Loads the extension module that needs torch, with a clear message where it cannot."""

from __future__ import annotations

import importlib
from types import ModuleType


def load() -> ModuleType:
    """``gradwire._torch``, or ImportError that says what is missing."""
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            "gradwire.attach and gradwire.all_reduce need torch, which cannot be imported: "
            f"{error}"
        ) from error
    try:
        return importlib.import_module("gradwire._torch")
    except ImportError as error:
        raise ImportError(
            f"gradwire was built without torch or for another torch than {torch.__version__}; "
            "build it again beside this one: pip install --no-build-isolation --force-reinstall "
            f"gradwire ({error})"
        ) from error
