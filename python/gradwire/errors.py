"""Exceptions of Gradwire: one class per error code, all with the same fields.

Every exception is a :class:`GradwireError`. Those that a wrong call or damaged bytes cause are a
``ValueError`` too, so that code which knows nothing of Gradwire treats them as it should.
"""

from __future__ import annotations

import re


class GradwireError(RuntimeError):
    """An error of Gradwire.

    Attributes:
        code: stable name of the error, e.g. ``"PeerMismatch"``; also the name of the class.
        message: what happened, in one line.
        field: header field or argument that is meant, ``""`` if none.
        mine, theirs: the value here and the value found, as text.
        rank: the rank that is meant, as its group counts, or None.
        sequence: number of the collective in its group, or None.
    """

    code = "Internal"

    def __init__(
        self,
        message: str,
        *,
        field: str = "",
        mine: str = "",
        theirs: str = "",
        rank: int | None = None,
        sequence: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.mine = mine
        self.theirs = theirs
        self.rank = rank
        self.sequence = sequence

    def __str__(self) -> str:
        """The message, with those fields that it does not mention."""
        facts = []
        if self.field and self.field not in self.message:
            facts.append(f"field {self.field}")
        for name in ("mine", "theirs"):
            value = getattr(self, name)
            if value and value not in self.message:
                facts.append(f"{name} {value}")
        for name in ("rank", "sequence"):
            value = getattr(self, name)
            if value is not None and not re.search(rf"\b{name} {value}\b", self.message):
                facts.append(f"{name} {value}")
        return f"{self.message} ({', '.join(facts)})" if facts else self.message

    def __reduce__(self):
        return _restore, (type(self), self.__dict__.copy())


def _restore(cls: type[GradwireError], fields: dict) -> GradwireError:
    error = cls(fields.pop("message"))
    error.__dict__.update(fields)
    return error


class InvalidArgument(GradwireError, ValueError):
    """An argument of the call is wrong."""

    code = "InvalidArgument"


class UnknownCodec(GradwireError, ValueError):
    """No codec has this name; the message lists those that exist."""

    code = "UnknownCodec"


class UnknownParameter(GradwireError, ValueError):
    """The codec has no such parameter; the message lists its parameters."""

    code = "UnknownParameter"


class OutOfRange(GradwireError, ValueError):
    """A parameter lies outside its range."""

    code = "OutOfRange"


class UnsupportedDType(GradwireError, ValueError):
    """The codec does not encode this type of values."""

    code = "UnsupportedDType"


class BufferTooSmall(GradwireError, ValueError):
    """The destination is too small."""

    code = "BufferTooSmall"


class OutOfMemory(GradwireError, MemoryError):
    """Memory could not be allocated."""

    code = "OutOfMemory"


class Truncated(GradwireError, ValueError):
    """The frame ends before its header says."""

    code = "Truncated"


class TrailingBytes(GradwireError, ValueError):
    """Bytes follow the end of the frame."""

    code = "TrailingBytes"


class BadMagic(GradwireError, ValueError):
    """These bytes are not a Gradwire frame."""

    code = "BadMagic"


class UnsupportedVersion(GradwireError, ValueError):
    """The frame has a version of the format that this release does not read."""

    code = "UnsupportedVersion"


class BadHeader(GradwireError, ValueError):
    """A header field has a value that is not allowed."""

    code = "BadHeader"


class HeaderChecksum(GradwireError, ValueError):
    """The header or the block index is damaged."""

    code = "HeaderChecksum"


class BlockChecksum(GradwireError, ValueError):
    """A block is damaged."""

    code = "BlockChecksum"


class CorruptBlock(GradwireError, ValueError):
    """A block has the right checksum and impossible contents."""

    code = "CorruptBlock"


class ShapeMismatch(GradwireError, ValueError):
    """The frame is sound and does not fit the destination."""

    code = "ShapeMismatch"


class PeerMismatch(GradwireError):
    """Two ranks called with different arguments: ``field``, ``mine``, ``theirs``, ``rank``."""

    code = "PeerMismatch"


class PeerLost(GradwireError, ConnectionError):
    """A rank died or its connection broke."""

    code = "PeerLost"


class DeadlineExceeded(GradwireError, TimeoutError):
    """A rank did not answer before the deadline."""

    code = "DeadlineExceeded"


class PeerError(GradwireError):
    """Another rank failed and said so."""

    code = "PeerError"


class Retired(GradwireError):
    """This group of ranks has failed before and is not used again."""

    code = "Retired"


class Internal(GradwireError):
    """A bug in Gradwire; please report it."""

    code = "Internal"


_CLASSES: dict[str, type[GradwireError]] = {cls.code: cls for cls in (
    InvalidArgument, UnknownCodec, UnknownParameter, OutOfRange, UnsupportedDType,
    BufferTooSmall, OutOfMemory, Truncated, TrailingBytes, BadMagic, UnsupportedVersion,
    BadHeader, HeaderChecksum, BlockChecksum, CorruptBlock, ShapeMismatch, PeerMismatch,
    PeerLost, DeadlineExceeded, PeerError, Retired, Internal,
)}  # fmt: skip

__all__ = ["GradwireError", *_CLASSES]  # noqa: PLE0604, the keys are strings


def make_error(
    code: str,
    message: str,
    field: str = "",
    mine: str = "",
    theirs: str = "",
    rank: int = -1,
    sequence: int = 0,
) -> GradwireError:
    """The exception for an error of the C++ library (called by the extension modules)."""
    error = _CLASSES.get(code, GradwireError)(
        message or code,
        field=field,
        mine=mine,
        theirs=theirs,
        rank=None if rank < 0 else rank,
        sequence=sequence or None,
    )
    error.code = code
    return error
