-- The version of the rules by which a snapshot was folded. A release that gives stored events another meaning counts it up.

-- Without a default, so that the table is not rewritten: null is version 1.
alter table agui.snapshot add column rules int;

comment on column agui.snapshot.rules is
    'The version of the rules by which it was folded (agui_internal.rules); null: 1. A snapshot of other rules is not used.';

create table agui_internal.older_rules (
    only_row   boolean primary key default true,
    thread_key uuid not null,
    constraint older_rules_has_one_row check (only_row)
);

comment on table agui_internal.older_rules is
    'How far agui_internal.apply_rules has come after an upgrade that changed the rules; empty: it is done.';
comment on column agui_internal.older_rules.only_row is 'True: there is one row at most.';
comment on column agui_internal.older_rules.thread_key is
    'Threads behind this one may have snapshots, and statuses of runs, by older rules.';

insert into agui_internal.older_rules (thread_key)
select '00000000-0000-0000-0000-000000000000'
where exists (select from agui.thread);
