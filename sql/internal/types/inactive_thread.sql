create type agui_internal.inactive_thread as (
    thread_key  uuid,
    scope       text,
    thread_id   text,
    last_news_at timestamptz,
    events      bigint
);

comment on type agui_internal.inactive_thread is 'A thread that could be erased: its key, scope and id, when something was appended to it or saved in it last, and how many events it has.';
