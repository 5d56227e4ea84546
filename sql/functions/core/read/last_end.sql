create or replace function agui_internal.last_end(thread_key uuid, run_no int, out seq bigint, out status text)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    select event.seq, event.status into last_end.seq, last_end.status
    from agui_internal.life_cycle(thread_key, run_no) as event
    where event.type <> 'RUN_STARTED' and not event.is_late
    order by event.seq desc
    limit 1;
end
$$;

comment on function agui_internal.last_end(uuid, int) is
    'The last RUN_FINISHED or RUN_ERROR of a run that has effect, as its log says, and the status after it; nulls: it has none.';

revoke execute on function agui_internal.last_end(uuid, int) from public;
