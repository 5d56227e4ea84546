create or replace function agui_internal.refuse_scope_collision(scope text)
returns void
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    other text;
begin
    -- All threads in the range are of one scope, so the first tells.
    select thread.scope into other
    from agui.thread as thread
    where thread.thread_key >= agui_internal.first_key(refuse_scope_collision.scope)
        and thread.thread_key <= agui_internal.last_key(refuse_scope_collision.scope)
    order by thread.thread_key
    limit 1;
    if other <> scope then
        raise exception using
            errcode = 'UI012',
            message = format('scope "%s" has the same key as another scope', left(scope, 200)),
            hint = 'Two scopes with the same 64-bit hash, which row-level security could not keep apart: choose another scope.';
    end if;
end
$$;

comment on function agui_internal.refuse_scope_collision(text) is
    'Refuses (UI012) a scope whose hash is that of another one that has threads: both would be one range of thread keys.';

revoke execute on function agui_internal.refuse_scope_collision(text) from public;
