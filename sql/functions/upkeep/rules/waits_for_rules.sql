create or replace function agui_internal.waits_for_rules(thread_key uuid)
returns boolean
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return exists (select from agui_internal.older_rules as older where older.thread_key < waits_for_rules.thread_key);
end
$$;

comment on function agui_internal.waits_for_rules(uuid) is
    'Whether a thread waits for agui_internal.apply_rules, which does the threads in the order of their keys.';

revoke execute on function agui_internal.waits_for_rules(uuid) from public;
