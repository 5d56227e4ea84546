-- Rules of how long threads are kept, and threads that must not be erased.

create table agui.retention (
    scope      text not null,
    is_all     boolean not null,
    action     text not null,
    older_than interval,
    set_at     timestamptz not null default clock_timestamp(),
    set_by     text not null default session_user,
    primary key (scope, is_all, action),
    constraint retention_is_for_one_scope_or_all check (scope = '' or not is_all),
    constraint retention_action_is_known check (action in ('archive', 'erase', 'remove_checkpoints')),
    constraint retention_keeps_for_a_time check (older_than > interval '0')
);

comment on table agui.retention is
    'What happens to threads without activity (agui.set_retention). For each action, the rule of a '
    'scope comes before the rule for all scopes. agui.apply_retention obeys them.';
comment on column agui.retention.scope is 'The scope; empty for all scopes.';
comment on column agui.retention.is_all is 'Whether the rule is for all scopes.';
comment on column agui.retention.action is
    'archive: lists leave the thread out. remove_checkpoints: its checkpoints are removed, its log '
    'stays. erase: it is erased (agui.erase).';
comment on column agui.retention.older_than is
    'How long nothing was appended to the thread or saved in it; null: the action is never done.';
comment on column agui.retention.set_at is 'When the rule was set.';
comment on column agui.retention.set_by is 'The role that was logged in.';

create table agui.hold (
    thread_key uuid primary key references agui.thread,
    reason     text not null,
    held_at    timestamptz not null default clock_timestamp(),
    held_by    text not null default session_user,
    constraint hold_has_a_reason check (reason <> '')
);

comment on table agui.hold is
    'Threads that must not be erased (agui.set_hold). The view agui.held_thread shows their names.';
comment on column agui.hold.reason is 'Why it is held.';
comment on column agui.hold.held_at is 'Since when.';
comment on column agui.hold.held_by is 'The role that was logged in.';

alter table agui.retention
    alter column scope set statistics 0,
    alter column action set statistics 0,
    alter column set_by set statistics 0;
alter table agui.hold
    alter column reason set statistics 0,
    alter column held_by set statistics 0;
