create or replace function agui_internal.keeps_interrupts(run agui.run)
returns boolean
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return case
        when run.status = 'running' then true
        when run.status in ('failed', 'cut_off') then (select finish.event is null from agui_internal.last_finish(run) as finish)
        else false
    end;
end
$$;

comment on function agui_internal.keeps_interrupts(agui.run) is
    'Whether what is open before a run is still open at its end, as in the folds: it is in progress, or it '
    'failed or broke off without a RUN_FINISHED.';

revoke execute on function agui_internal.keeps_interrupts(agui.run) from public;
