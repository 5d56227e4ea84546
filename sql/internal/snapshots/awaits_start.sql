create or replace function agui_internal.awaits_start(thread_key uuid, run_no int, through_seq bigint)
returns boolean
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select exists (
        select from agui_internal.input_places(awaits_start.thread_key, array[awaits_start.run_no], array[awaits_start.through_seq]) as place
        where not place.is_start
    )
$$;

comment on function agui_internal.awaits_start(uuid, int, bigint) is
    'Whether a run has an input beside its events and, through a seq, no RUN_STARTED that it would count at. What its events mean then is no base to go on from, '
    'as long as more may come.';

revoke execute on function agui_internal.awaits_start(uuid, int, bigint) from public;
