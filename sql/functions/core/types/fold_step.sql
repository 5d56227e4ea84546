-- A step from agui_internal.fold_steps for agui_internal.fold_events. Each action uses some of the
-- columns:
--
--     start message      id, role, name, owner, metadata: a message that may exist already
--     start call         id, name, parent_id (of the message that gets it), owner, metadata
--     grow               id, is_call, content (one or more pieces, joined), metadata: the content of a
--                        message, the arguments of a call
--     merge              id, is_call, metadata
--     add result         id (of the call), parent_id (of the new message), role, content, owner, metadata
--     encrypt            id, is_call, content
--     add message        id, content: a message of the input of a run
--     show activity      id, activity_type, content, replaces, owner, metadata
--     patch activity     id, activity_type, content (the patch), metadata
--     list messages      messages, metadata: of a MESSAGES_SNAPSHOT
--     set state          content
--     patch state        content (the patch)
--     set interrupts     content (not guarded)
--     look               brought: the fold may have become too large
--     end run            brought: the same; the last step of a run
--     end                content (the chunk lanes, not guarded), brought: the last step
--     refuse lanes       too many chunk lanes are open; only the end follows
create type agui_internal.fold_step as (
    seq           bigint,
    action        text,
    id            text,
    is_call       boolean,
    owner         text,
    metadata      text,
    content       text,
    role          text,
    name          text,
    parent_id     text,
    activity_type text,
    replaces      boolean,
    messages      json,
    costs         boolean,
    copies        boolean,
    brought       bigint
);

comment on type agui_internal.fold_step is
    'What one event, or several with the pieces of one string, do to a fold. seq is that of the '
    'last of them. Texts are guarded JSON (agui_internal.json_guard). An id is a JSON string in '
    'normalized spelling, with its quotes; that of a tool call if is_call. costs: whether the '
    'patch may use fuel; copies: whether it copies. brought: the bytes that all events have '
    'brought, including this one.';
