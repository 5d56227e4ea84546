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
        return null;  -- the caller says what is missing
    end if;
    select * into refusal from agui_internal.scope_refusal(thread_key, scope);
    raise exception using
        errcode = '42501',
        message = refusal.message,
        hint = refusal.hint;
end
$$;

comment on function agui_internal.refuse_foreign(uuid, text) is
    'Refuses (42501) a change to a scope that the role that calls does not have, as agui_internal.scope_refusal says it; nothing where there is no key.';

revoke execute on function agui_internal.refuse_foreign(uuid, text) from public;
