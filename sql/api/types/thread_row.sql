create type agui.thread_row as (
    thread_id   text,
    title       text,
    agent       text,
    metadata    jsonb,
    archived    boolean,
    created_at  timestamptz,
    active_at   timestamptz,
    head_run_id text,
    status      text,
    is_stale    boolean,
    runs        int,
    branches    int,
    cursor      text
);

comment on type agui.thread_row is
    'A thread in a list: its title (the one that was set, else the beginning of the first user '
    'message, else null), agent (null: not set) and metadata; whether it is archived; when it was '
    'made, and when a run of it last began or ended; the head, its status, and whether it is in '
    'progress without a sign of life within the lease (null, null and false while there are no '
    'runs); the number of runs and of branches; and the place of the thread in lists, from which '
    'agui.threads goes on.';
