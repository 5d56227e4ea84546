create or replace function agui.load_checkpoint(
    thread_id     text,
    checkpoint_id text default null,
    namespace     text default '',
    run_id        text default null,
    scope         text default ''
)
returns setof agui.checkpoint_row
language plpgsql
stable
security definer
rows 1
set search_path = pg_catalog, pg_temp
as $$
declare
    checkpoint agui.checkpoint;
begin
    if run_id is null then
        checkpoint := agui_internal.find_checkpoint(thread_id, checkpoint_id, namespace, scope);
    elsif checkpoint_id is not null or namespace is null then
        raise exception using
            errcode = 'UI008',
            message = format('to load the checkpoint of run "%s", give a namespace and no id of a checkpoint', left(run_id, 200));
    else
        checkpoint := agui_internal.checkpoint_at(agui_internal.find_run(thread_id, run_id, scope), namespace);
    end if;
    if checkpoint.checkpoint_no is not null then
        return next agui_internal.show_checkpoint(checkpoint);
    end if;
end
$$;

comment on function agui.load_checkpoint(text, text, text, text, text) is
    'Returns a checkpoint (null: the one saved last in the namespace). With run_id and without an id: '
    'the one saved last at that run, or else at the nearest run before it on its lineage. So a branch '
    'of the conversation leads to the state that belongs to it. Returns no row if there is none. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI008 no thread, namespace or scope, or both id '
    'and run, UI012 another thread has the same key, UI019 unknown checkpoint (when one is named).';

revoke execute on function agui.load_checkpoint(text, text, text, text, text) from public;
