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
    ended_at      timestamptz,
    thread_uid    uuid,
    is_erased     boolean
);

comment on type agui.changed_run is
    'A run that began, ended, or took events after its end; or, if is_erased, a thread that was erased: '
    'then only position and thread_uid are not null. position: what agui.changes takes to go on behind '
    'it. thread_uid: a random id of the thread, another one if it is erased and begun again; all that '
    'was copied of an erased thread has it. The others are those of the run when it was read, which may be later than the '
    'change: last_seq and ended_at are null while it is running. Its events are those of the run from '
    'first_seq on (agui.events).';
