create type agui_internal.open_part as (
    opens     text,
    closes    text,
    named_by  text,
    name      text,
    owner     text,
    opened_at bigint,
    event     json
);

comment on type agui_internal.open_part is
    'What a run has begun and not ended, such as a message: the types of the events that begin '
    'and end it, the field that its end names it by (null: none), that name, the subagent where '
    'the name alone does not do, the seq of the event that began it, and that event. Name, owner '
    'and event are guarded (agui_internal.json_guard).';
