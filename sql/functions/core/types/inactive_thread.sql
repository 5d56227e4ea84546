create type agui_internal.inactive_thread as (
    thread_key  uuid,
    scope       text,
    thread_id   text,
    last_news_at timestamptz,
    events      bigint
);

comment on type agui_internal.inactive_thread is
    'A thread that may be erased: its key, scope and id, the time when something was last appended '
    'or saved in it, and the number of its events.';
