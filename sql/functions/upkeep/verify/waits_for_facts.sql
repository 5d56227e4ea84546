create or replace function agui_internal.waits_for_facts(thread_key uuid)
returns boolean
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return not exists (
        select
        from agui_internal.projection as state
        where state.scan_key is null or state.scan_key > waits_for_facts.thread_key
    );
end
$$;

comment on function agui_internal.waits_for_facts(uuid) is
    'Whether agui.project() is to read all runs of a thread: for the first time, or once more, because what facts say has '
    'changed (agui.map_usage, an upgrade).';

revoke execute on function agui_internal.waits_for_facts(uuid) from public;
