-- The result of a fold so far: the value that the fold functions pass to each other and to the
-- readers. The arrays are parallel, with one entry for each message in the order of the
-- conversation.
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
    'The result of a lineage at a seq: messages, state, interrupts and open chunk lanes. Texts are '
    'JSON. message_nos has the number of the stored version of a message, null for one that is new '
    'or changed. Entries with the same number are one message at several places; the number is '
    'negative if that message is new or changed. state_patches (guarded, agui_internal.json_guard) '
    'are not applied to the state yet: agui_internal.fold_patched. size: agui_internal.fold_size '
    'at the last check, plus what events have brought since. spent: the fuel that the last run has '
    'used (docs/settings.md).';
