-- What agents answered in place of events, for those who operate them.

create table agui.agent_error (
    thread_key   uuid not null,
    run_no       int not null,
    status       int not null,
    content_type text not null,
    body         bytea not null,
    recorded_at  timestamptz not null,
    primary key (thread_key, run_no),
    foreign key (thread_key, run_no) references agui.run,
    constraint agent_error_is_short check (octet_length(content_type) <= 1024 and octet_length(body) <= 4096)
);

comment on table agui.agent_error is
    'What the agent of a run answered in place of a stream of events (agui.keep_agent_error): one row for a run, the last answer.';
comment on column agui.agent_error.status is 'The status of the answer (HTTP).';
comment on column agui.agent_error.content_type is 'Its Content-Type; empty: none.';
comment on column agui.agent_error.body is 'The first 4 KB of its body, in whatever encoding it came.';
comment on column agui.agent_error.recorded_at is 'When it was stored.';

-- The planner's estimates apply no policy (see the first migration).
alter table agui.agent_error
    alter column content_type set statistics 0,
    alter column body set statistics 0;
