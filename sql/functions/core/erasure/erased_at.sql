create or replace function agui_internal.erased_at(thread_key uuid)
returns timestamptz
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select erasure.erased_at
        from agui.erasure as erasure
        where erasure.erased_key = agui_internal.erasure_key(agui_internal.visible_key(erased_at.thread_key))
            and erasure.allowed_at is null
    );
end
$$;

comment on function agui_internal.erased_at(uuid) is
    'The time when a thread was erased, unless the erasure was lifted; null: it was not erased. '
    'Readers of threads may call it for a thread whose name they have; agui.erasure itself is for '
    'maintainers.';

revoke execute on function agui_internal.erased_at(uuid) from public;
