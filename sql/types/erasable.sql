create type agui.erasable as (
    thread_key  uuid,
    scope       text,
    thread_id   text,
    last_event_at timestamptz,
    events      bigint
);

comment on type agui.erasable is 'A thread that could be erased: its key, scope and id, when its last event was appended, and how many it has.';
