"""Stores the event streams of AG-UI agents in PostgreSQL. See README.md, and AsyncStore."""

from . import errors
from ._error import Closed, Error, NeedsPool, Unavailable, WrongSchema
from ._recorder import OnConcurrentRun, Recording, Tee
from ._repair import repair_tool_calls
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
    "OnConcurrentRun",
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
    "WrongSchema",
    "errors",
    "repair_tool_calls",
    "sse",
]
