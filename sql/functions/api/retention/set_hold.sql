create or replace function agui.set_hold(thread_id text, reason text, scope text default '')
returns agui.hold
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    key  constant uuid := agui_internal.key_to_change(thread_id, scope);
    held agui.hold;
begin
    if reason is null or reason = '' then
        raise exception using
            errcode = '22023',
            message = format('thread "%s": a hold needs a reason', thread_id);
    end if;
    -- An erasure in progress ends first.
    perform from agui.thread as thread where thread.thread_key = key for key share;
    if not found then
        raise exception using
            errcode = 'UI001',
            message = format('thread "%s" is unknown%s', thread_id, case when scope <> '' then format(' in scope "%s"', scope) else '' end),
            hint = 'Is it in another scope?';
    end if;
    insert into agui.hold (thread_key, reason)
    values (key, set_hold.reason)
    on conflict on constraint hold_pkey do update
    set reason = excluded.reason
    returning * into held;
    return held;
end
$$;

comment on function agui.set_hold(text, text, text) is
    'Holds a thread: it cannot be erased, and agui.apply_retention only archives it, until '
    'agui.lift_hold. A second call replaces the reason. Requires agui_maintainer. '
    'Errors: 22023 no reason, UI001 unknown thread, UI012 another thread has the same key.';

revoke execute on function agui.set_hold(text, text, text) from public;
