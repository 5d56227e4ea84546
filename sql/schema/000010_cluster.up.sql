-- A cluster: several databases, its nodes, each with some of the threads. One database alone is no
-- node, and these tables are empty.

create table agui_internal.node (
    only_row  boolean primary key default true,
    name      text not null,
    joined_at timestamptz not null default clock_timestamp(),
    constraint node_has_one_row check (only_row),
    constraint node_name_is_short check (name ~ '^[a-z0-9][a-z0-9_.-]{0,62}$')
);

comment on table agui_internal.node is 'Which node of a cluster this database is; empty: of none.';
comment on column agui_internal.node.only_row is 'True: there is one row at most.';
comment on column agui_internal.node.name is 'Its name in the cluster.';
comment on column agui_internal.node.joined_at is 'Since when.';

create table agui_internal.bucket (
    bucket    int primary key,
    node      text not null,
    epoch     bigint not null,
    fenced_in xid8,
    constraint bucket_is_known check (bucket between 0 and 1023)
);

comment on table agui_internal.bucket is
    'The map of the cluster: which node has the threads of a bucket. Each node has a copy.';
comment on column agui_internal.bucket.bucket is 'The first 10 bits of the second half of the keys of its threads (agui_internal.bucket_of).';
comment on column agui_internal.bucket.node is 'The name of the node.';
comment on column agui_internal.bucket.epoch is 'Counts the moves of the bucket, so that of two copies the newer one is known.';
comment on column agui_internal.bucket.fenced_in is
    'The last transaction that moved it, or threads of it, away. A writer whose snapshot is older fails with 40001.';

create table agui_internal.moved_thread (
    thread_key uuid primary key,
    node       text not null,
    moved_at   timestamptz not null default clock_timestamp()
);

comment on table agui_internal.moved_thread is
    'Threads that are on another node than the map says, because they or their bucket are being '
    'moved, or were moved alone. Both nodes have the row.';
comment on column agui_internal.moved_thread.thread_key is 'agui.thread_key of the thread.';
comment on column agui_internal.moved_thread.node is 'The node that has it.';
comment on column agui_internal.moved_thread.moved_at is 'Since when.';

-- The planner's estimates apply no policy (see the first migration).
alter table agui_internal.node alter column name set statistics 0;
alter table agui_internal.bucket alter column node set statistics 0;
alter table agui_internal.moved_thread alter column node set statistics 0;
