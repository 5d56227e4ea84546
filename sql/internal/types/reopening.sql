create type agui_internal.reopening as (
    lost          text,
    known         text,
    changes_owner boolean
);

comment on type agui_internal.reopening is
    'Events (JSON texts, joined by commas; null: none) that open again what a run has open, for a '
    'reader who has its messages: lost those of messages and tool calls that are not there any '
    'more, which go before a list of the messages, known the others, which go behind it. '
    'changes_owner: something is open of a subagent that its message does not name, so that a list '
    'of the messages makes it the main agent''s, and a client refuses what comes of it.';
