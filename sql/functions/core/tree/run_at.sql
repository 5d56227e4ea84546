create or replace function agui_internal.run_at(leaf agui.run, at_seq bigint)
returns agui.run
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    run agui.run := leaf;
begin
    if leaf.first_seq > at_seq then
        select * into run
        from agui_internal.ancestors(leaf) as ancestor
        where ancestor.first_seq <= at_seq
        order by ancestor.run_no desc
        limit 1;
    end if;
    return run;
end
$$;

comment on function agui_internal.run_at(agui.run, bigint) is
    'The run of a lineage in progress at a seq (null: the run itself); null before the first one.';

revoke execute on function agui_internal.run_at(agui.run, bigint) from public;
