"""Stores the event streams of AG-UI agents in PostgreSQL. See README.md, and AsyncStore."""

from . import errors
from ._error import Closed, Error, NeedsPool, Unavailable, WrongSchema
from ._recorder import Agent, History, OnConcurrentRun, Recording, Tee
from ._repair import repair_tool_calls
from .store import AsyncStore, Store, sse
from .types import (
    Attachment,
    AttachmentPart,
    Batch,
    BranchPoint,
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
    "Agent",
    "AsyncStore",
    "Attachment",
    "AttachmentPart",
    "Batch",
    "BranchPoint",
    "Claim",
    "Closed",
    "Conversation",
    "Erasure",
    "Error",
    "Event",
    "History",
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
