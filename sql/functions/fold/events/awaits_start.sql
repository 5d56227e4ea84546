create or replace function agui_internal.awaits_start(thread_key uuid, run_no int, through_seq bigint)
returns boolean
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return exists (
        select from agui_internal.input_places(thread_key, array[run_no], array[through_seq]) as place
        where not place.is_start
    );
end
$$;

comment on function agui_internal.awaits_start(uuid, int, bigint) is
    'Whether a run has an input beside its events and, up to a seq, no RUN_STARTED at which it '
    'would count. A fold of its events cannot be continued from as long as more events may come.';

revoke execute on function agui_internal.awaits_start(uuid, int, bigint) from public;
