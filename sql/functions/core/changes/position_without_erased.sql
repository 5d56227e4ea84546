create or replace function agui_internal.position_without_erased("position" text, scope text)
returns text
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    -- A place with run 0 names no run: it is the beginning, or an erasure.
    key    constant uuid := substring(position from ' ([0-9a-f]{8}-[0-9a-f-]{27}) [1-9][0-9]*$');
    before record;
begin
    perform from agui.thread as thread where thread.thread_key = key for key share;
    if found or key is null then
        return position;
    end if;
    before := agui_internal.run_before(key, coalesce(agui_internal.first_key(scope), '00000000-0000-0000-0000-000000000000'));
    return regexp_replace(position, '[^ ]+ [0-9]+$', concat_ws(' ', before.thread_key, before.run_no));
end
$$;

comment on function agui_internal.position_without_erased(text, text) is
    'A position of agui.changes for a reader of a scope (null: of all): the same one, unless its thread was '
    'erased; then one behind the same runs that does not hold the key of the thread. The thread cannot be '
    'erased before the transaction ends.';

revoke execute on function agui_internal.position_without_erased(text, text) from public;
