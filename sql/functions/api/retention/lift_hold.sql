create or replace function agui.lift_hold(thread_id text, scope text default '')
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    key constant uuid := agui_internal.key_to_change(thread_id, scope);
begin
    delete from agui.hold as held where held.thread_key = key;
    return found;
end
$$;

comment on function agui.lift_hold(text, text) is
    'Permits a held thread to be erased again. Returns whether it was held. Requires '
    'agui_maintainer. '
    'Errors: UI012 another thread has the same key.';

revoke execute on function agui.lift_hold(text, text) from public;
