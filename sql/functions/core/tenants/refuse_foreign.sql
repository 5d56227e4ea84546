create or replace function agui_internal.refuse_foreign(thread_key uuid, scope text)
returns uuid
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    refusal record;
begin
    if thread_key is null then
        return null;  -- the caller reports what is missing
    end if;
    select * into refusal from agui_internal.scope_refusal(thread_key, scope);
    raise exception using
        errcode = '42501',
        message = refusal.message,
        hint = refusal.hint;
end
$$;

comment on function agui_internal.refuse_foreign(uuid, text) is
    'Raises 42501 with the text of agui_internal.scope_refusal: the calling role does not have the '
    'scope that it wants to change. Does nothing without a key.';

revoke execute on function agui_internal.refuse_foreign(uuid, text) from public;
