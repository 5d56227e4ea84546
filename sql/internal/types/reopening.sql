create type agui_internal.reopening as (
    lost  text,
    known text
);

comment on type agui_internal.reopening is
    'Events (JSON texts, joined by commas; null: none) that open again what a run has open, for a '
    'reader who has its messages: lost those of messages and tool calls that are not there any '
    'more, which go before a list of the messages, known the others, which go behind it.';
