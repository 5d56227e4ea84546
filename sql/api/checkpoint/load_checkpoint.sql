create or replace function agui.load_checkpoint(
    thread_id     text,
    checkpoint_id text default null,
    namespace     text default '',
    scope         text default ''
)
returns setof agui.checkpoint_row
language plpgsql
stable
security definer
parallel safe
rows 1
set search_path = pg_catalog, pg_temp
as $$
declare
    checkpoint agui.checkpoint := agui_internal.find_checkpoint(thread_id, checkpoint_id, namespace, scope);
begin
    if checkpoint.checkpoint_no is not null then
        return next agui_internal.show_checkpoint(checkpoint);
    end if;
end
$$;

comment on function agui.load_checkpoint(text, text, text, text) is
    'Returns a checkpoint (null: the one saved last in the namespace). Returns no row if the '
    'namespace is empty. '
    'Errors: UI008 no thread, namespace or scope, UI012 another thread has the same key, UI019 '
    'unknown checkpoint (when one is named).';

revoke execute on function agui.load_checkpoint(text, text, text, text) from public;
