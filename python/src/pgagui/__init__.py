"""Stores the event streams of AG-UI agents in PostgreSQL. See README.md, and AsyncStore."""

from . import errors
from ._error import Closed, Error, NeedsPool, Unavailable
from ._recorder import Recording, Tee
from .store import AsyncStore, Store, sse
from .types import (
    Attachment,
    Batch,
    Claim,
    Conversation,
    Erasure,
    Event,
    Interrupt,
    Position,
    Run,
    RunStatus,
    Signal,
    Thread,
    Waiting,
)

__all__ = [
    "AsyncStore",
    "Attachment",
    "Batch",
    "Claim",
    "Closed",
    "Conversation",
    "Erasure",
    "Error",
    "Event",
    "Interrupt",
    "NeedsPool",
    "Position",
    "Recording",
    "Run",
    "RunStatus",
    "Signal",
    "Store",
    "Tee",
    "Thread",
    "Unavailable",
    "Waiting",
    "errors",
    "sse",
]
