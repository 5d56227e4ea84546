-- Scopes of a cluster whose threads are all in one bucket, so that they stay together.

create table agui_internal.pinned_scope (
    scope_hash bytea primary key,
    scope      text not null,
    bucket     int,
    epoch      bigint not null,
    pinned_at  timestamptz not null default clock_timestamp(),
    constraint pinned_scope_has_a_hash check (octet_length(scope_hash) = 8),
    constraint pinned_scope_has_a_known_bucket check (bucket between 0 and 1023)
);

comment on table agui_internal.pinned_scope is
    'Scopes whose threads are all in one bucket of the cluster. Each node has a copy.';
comment on column agui_internal.pinned_scope.scope_hash is 'The first half of the keys of its threads.';
comment on column agui_internal.pinned_scope.scope is 'The scope.';
comment on column agui_internal.pinned_scope.bucket is 'The bucket; null: the scope was pinned, and is no longer.';
comment on column agui_internal.pinned_scope.epoch is 'Counts the changes, so that of two copies the newer one is known.';
comment on column agui_internal.pinned_scope.pinned_at is 'When this node noted it.';

alter table agui_internal.bucket add column has_pins boolean not null default false;
comment on column agui_internal.bucket.has_pins is
    'Whether there are pinned scopes. It is the same in all rows: who looks a bucket up knows then whether to look for a pin.';

-- The planner's estimates apply no policy (see the first migration).
alter table agui_internal.pinned_scope
    alter column scope_hash set statistics 0,
    alter column scope set statistics 0;
