create type agui.changed_run as (
    position      text,
    scope         text,
    thread_id     text,
    run_id        text,
    parent_run_id text,
    status        text,
    first_seq     bigint,
    last_seq      bigint,
    started_at    timestamptz,
    ended_at      timestamptz
);

comment on type agui.changed_run is
    'A run that began, ended, or took events after its end. position: what agui.changes takes to go '
    'on behind it. The others are those of the run when it was read, which may be later than the '
    'change: last_seq and ended_at are null while it is running. Its events are those of the run from '
    'first_seq on (agui.events).';
