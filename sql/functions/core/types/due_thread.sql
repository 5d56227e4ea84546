create type agui_internal.due_thread as (
    thread_key uuid,
    scope      text,
    thread_id  text,
    action     text,
    older_than interval,
    is_all     boolean,
    last_news_at timestamptz,
    events     bigint,
    log_bytes  bigint,
    kept_because text
);

comment on type agui_internal.due_thread is
    'A thread for which an action of agui.retention is due, with the rule (is_all: the one for all '
    'scopes), the time when something was last appended or saved in it, the number of its events, and '
    'their stored size as far as compaction has measured it. kept_because says why the action is not '
    'done: held, or in progress; null: it is done.';
