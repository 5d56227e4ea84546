create or replace function agui.carries_on(carried agui.carried_fold, run agui.run)
returns boolean
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return exists (
        select
        from agui.run as parent
        left join agui.snapshot as base
            on base.thread_key = parent.thread_key and base.run_no = carried.base_no
        where parent.thread_key = run.thread_key
            and parent.run_no = run.parent_no
            and parent.thread_key = carried.thread_key
            and parent.run_no = carried.run_no
            and parent.last_seq = (carried.fold).through_seq
            and parent.ended_at = carried.ended_at
            and base.created_at is not distinct from carried.base_at
    );
end
$$;

comment on function agui.carries_on(agui.carried_fold, agui.run) is
    'Whether a run can be folded onto what was carried on: it is what its parent means, and the messages that it points to are still '
    'stored. Others may have been at the thread between two commits: its log, its snapshots, or all of it may have gone. '
    'The caller holds the thread''s row.';

revoke execute on function agui.carries_on(agui.carried_fold, agui.run) from public;
