create or replace function agui.allow(thread_id text, scope text default '')
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    update agui.erasure as erasure
    set allowed_at = clock_timestamp(), allowed_by = session_user
    where erasure.thread_key = agui.thread_key(allow.scope, allow.thread_id) and erasure.allowed_at is null;
    return found;
end
$$;

comment on function agui.allow(text, text) is
    'Lets an erased thread begin anew, from seq 1. Answers whether appends to it were refused. Takes the rights of agui_maintainer.';

revoke execute on function agui.allow(text, text) from public;
