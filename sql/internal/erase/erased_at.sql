create or replace function agui_internal.erased_at(thread_key uuid)
returns timestamptz
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
    select erasure.erased_at
    from agui.erasure as erasure
    where erasure.erased_key = agui_internal.erasure_key(agui_internal.visible_key(erased_at.thread_key))
        and erasure.allowed_at is null
$$;

comment on function agui_internal.erased_at(uuid) is
    'When a thread was erased that is not allowed again; null: it was not. Who reads threads may ask about one whose name is known; agui.erasure is for maintainers.';

revoke execute on function agui_internal.erased_at(uuid) from public;
