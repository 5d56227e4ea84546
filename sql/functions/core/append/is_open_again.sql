create or replace function agui_internal.is_open_again(thread_key uuid, run_no int)
returns boolean
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select event.type = 'RUN_STARTED'
        from agui_internal.life_cycle(thread_key, run_no) as event
        where not event.is_late
        order by event.seq desc
        limit 1
    );
end
$$;

comment on function agui_internal.is_open_again(uuid, int) is
    'Whether a RUN_STARTED has followed the last end of a run, so that the next end counts.';

revoke execute on function agui_internal.is_open_again(uuid, int) from public;
