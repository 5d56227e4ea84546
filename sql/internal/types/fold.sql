-- What a stretch of log has meant so far: the value that the fold functions hand on to each other and to the readers.
-- The arrays run side by side, one entry a message in conversation order.
create type agui_internal.fold as (
    through_seq   bigint,
    message_nos   int[],
    message_ids   text[],
    roles         text[],
    bodies        text[],
    state         text,
    interrupts    text,
    lanes         text,
    state_patches text[],
    size          bigint,
    spent         bigint
);

comment on type agui_internal.fold is
    'What a lineage means at a seq: messages, state, interrupts and open chunk lanes. Texts are JSON; message_nos holds the '
    'number of the stored version of a message, null for one that is new or has changed since. Entries with the same number '
    'are one message that stands at several places; the number is negative when that message is new or has changed. '
    'state_patches (guarded, agui_internal.json_guard) are not applied to the state yet: agui_internal.fold_patched. '
    'size: agui_internal.fold_size when that was looked at last, and what events have brought since; spent: the fuel that the last run has used (docs/settings.md).';
