-- Named readers of agui.changes that keep their place in the database.

create table agui.consumer (
    consumer_key uuid primary key default gen_random_uuid(),
    scope        text not null,
    is_all       boolean not null,
    consumer     text not null,
    position     text,
    created_at   timestamptz not null default clock_timestamp(),
    moved_at     timestamptz not null default clock_timestamp(),
    moved_by     text not null default session_user,
    constraint consumer_name unique (scope, is_all, consumer),
    constraint consumer_is_for_one_scope_or_all check (scope = '' or not is_all),
    constraint consumer_has_a_name check (consumer <> '')
);

comment on table agui.consumer is
    'Named readers of what changed, with their places (agui.consume, agui.move_consumer). The function '
    'agui.consumers also says how far they are behind.';
comment on column agui.consumer.consumer_key is 'Identifies it in agui_internal.consumer_thread.';
comment on column agui.consumer.scope is 'The scope that it reads; empty for all scopes.';
comment on column agui.consumer.is_all is 'Whether it reads all scopes.';
comment on column agui.consumer.consumer is 'Its name, which is its own within the scope.';
comment on column agui.consumer.position is 'It has processed the changes up to here; null: none.';
comment on column agui.consumer.created_at is 'When its place was first noted.';
comment on column agui.consumer.moved_at is 'When its place was last noted.';
comment on column agui.consumer.moved_by is 'The role that was logged in at that time.';

create table agui_internal.consumer_thread (
    thread_key   uuid not null references agui.thread,
    consumer_key uuid not null references agui.consumer on delete cascade,
    read_seq     bigint not null,
    primary key (thread_key, consumer_key)
);

comment on table agui_internal.consumer_thread is 'How far consumers that read events have come in a thread (agui.mark_read).';
comment on column agui_internal.consumer_thread.consumer_key is 'The consumer.';
comment on column agui_internal.consumer_thread.read_seq is 'The seq of the last event that the consumer has processed.';

-- The planner's estimates apply no policy (see the first migration).
alter table agui.consumer
    alter column scope set statistics 0,
    alter column consumer set statistics 0,
    alter column position set statistics 0,
    alter column moved_by set statistics 0;
