create or replace function agui_internal.own_key(thread_key uuid, scope text default null)
returns uuid
language plpgsql
stable
parallel safe
-- Every append calls it: to pin the search path would take a third of its time. So every name in it is qualified.
as $$
declare
    refusal pg_catalog.record;
begin
    if not agui_internal.has_row_security() or thread_key is null then
        return thread_key;
    end if;
    perform
    from agui_internal.caller as caller
    where own_key.thread_key operator(pg_catalog.>=) caller.low and own_key.thread_key operator(pg_catalog.<=) caller.high;
    if not found and not agui_internal.is_exempt(agui_internal.caller_role()) then
        select * into refusal from agui_internal.scope_refusal(thread_key, scope);
        raise exception using
            errcode = '42501',
            message = refusal.message,
            hint = refusal.hint;
    end if;
    return thread_key;
end
$$;

comment on function agui_internal.own_key(uuid, text) is
    'The key of a thread, which need not exist, that the role that calls may change; scope is for the error. Whatever changes something calls this, or '
    'agui_internal.own_thread_key, before it looks anything up: 42501 where row-level security is on and the key is of another scope.';

revoke execute on function agui_internal.own_key(uuid, text) from public;
