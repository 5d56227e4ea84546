create or replace function agui_internal.refuse_scope_collision(scope text)
returns void
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
-- Planned once: a plan for each call would take longer than the call.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
    other text;
begin
    -- All threads in the range have the same scope, so the first one is sufficient.
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
            hint = 'The two scopes have the same 64-bit hash, so row-level security could not separate them. Use another scope.';
    end if;
end
$$;

comment on function agui_internal.refuse_scope_collision(text) is
    'Raises UI012 if the hash of a scope equals that of another scope that has threads: both would '
    'be one range of thread keys.';

revoke execute on function agui_internal.refuse_scope_collision(text) from public;
