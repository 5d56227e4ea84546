create or replace function agui_internal.open_interrupts(run agui.run)
returns setof agui.projected_interrupt
language plpgsql
stable
parallel safe
rows 1
set search_path = pg_catalog, pg_temp
as $$
declare
    asking constant agui.run := agui_internal.asking_run(run);
begin
    return query
    select asked.*
    from agui_internal.last_finish(asking) as finish
    cross join lateral agui_internal.interrupts_of_end(asking, finish.interrupts, finish.at) as asked;
end
$$;

comment on function agui_internal.open_interrupts(agui.run) is
    'The interrupts that a restore of a run has, expired ones too: of the run itself, or of one before it.';

revoke execute on function agui_internal.open_interrupts(agui.run) from public;
