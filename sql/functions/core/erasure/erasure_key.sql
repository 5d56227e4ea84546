create or replace function agui_internal.erasure_key(thread_key uuid)
returns uuid
language plpgsql
stable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    salt bytea := (select known.salt from agui_internal.erasure_salt as known);
begin
    if salt is null then
        raise exception using
            errcode = '55000',
            message = 'agui_internal.erasure_salt is empty, so erased threads cannot be distinguished from others',
            hint = 'Restore the row together with the data of the database. If the data is lost, call agui.grant_access().';
    end if;
    return encode(
        substring(sha256(salt || substring(uuid_send(thread_key) for 8)) for 8) || substring(sha256(salt || uuid_send(thread_key)) for 8),
        'hex'
    )::uuid;
end
$$;

comment on function agui_internal.erasure_key(uuid) is
    'The key of a thread in agui.erasure: its thread_key, each half hashed with the salt of this '
    'database. For the owner only, because a caller can test names with it.';

revoke execute on function agui_internal.erasure_key(uuid) from public;
