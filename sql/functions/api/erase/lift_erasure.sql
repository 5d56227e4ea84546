create or replace function agui.lift_erasure(thread_id text, scope text default '')
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    key uuid := agui_internal.key_to_change(thread_id, scope);
begin
    update agui.erasure as erasure
    set allowed_at = clock_timestamp(), allowed_by = session_user
    where erasure.erased_key = agui_internal.erasure_key(key) and erasure.allowed_at is null;
    return found;
end
$$;

comment on function agui.lift_erasure(text, text) is
    'Permits an erased thread to be used from the beginning: its next event gets seq 1. Returns '
    'whether writes to it were refused until now. Requires agui_maintainer. '
    'Errors: UI012 another thread has the same key.';

revoke execute on function agui.lift_erasure(text, text) from public;
