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
    cursor      text,
    error_code     text,
    error_message  text,
    stop_reason    text,
    cut_off_reason text
);

comment on type agui.thread_row is
    'A thread in a list. title: the one that was set, else the beginning of the first user '
    'message, else null. agent (null: not set) and metadata: as set. archived: whether it is '
    'archived. created_at: when it was created. active_at: when a run of it last began or ended. '
    'head_run_id and status: the head and its status (null while there are no runs). is_stale: '
    'whether the head is in progress without a sign of life within the lease. runs and branches: '
    'how many there are. cursor: the position of the thread in lists, from which agui.threads '
    'continues. The last four columns say why the head ended so, as in agui.run_info.';
