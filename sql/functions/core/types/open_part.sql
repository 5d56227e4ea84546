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
    'Something that a run has begun and not ended, such as a message: the types of the events that '
    'begin and end it, the field of the end that names it (null: none), its name, the subagent if '
    'the name is not sufficient, the seq of the event that began it, and that event. Name, owner '
    'and event are guarded (agui_internal.json_guard).';
