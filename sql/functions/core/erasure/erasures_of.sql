create or replace function agui_internal.erasures_of(thread_key uuid, out erased_at timestamptz, out events bigint)
returns setof record
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
        select erasure.erased_at, erasure.events
        from agui.erasure as erasure
        where erasure.erased_key = agui_internal.erasure_key(agui_internal.visible_key(erasures_of.thread_key))
        order by erasure.erased_at;
end
$$;

comment on function agui_internal.erasures_of(uuid) is
    'When a thread was erased, and how many events it had then, also if the erasure was lifted. As '
    'agui_internal.erased_at, for readers who have the name of the thread.';

revoke execute on function agui_internal.erasures_of(uuid) from public;
