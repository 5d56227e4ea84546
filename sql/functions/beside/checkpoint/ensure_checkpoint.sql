create or replace function agui_internal.ensure_checkpoint(
    thread_key    uuid,
    namespace     text,
    checkpoint_id text,
    parent_no     bigint default null,
    run_id        text default null,
    document      json default null,
    metadata      json default null,
    out kept      agui.checkpoint,
    out is_new    boolean
)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    -- If another transaction inserts the same number first, the insert waits for its commit, then
    -- the loop tries the next one.
    loop
        select * into kept
        from agui.checkpoint as checkpoint
        where checkpoint.thread_key = ensure_checkpoint.thread_key
            and checkpoint.namespace = ensure_checkpoint.namespace
            and checkpoint.checkpoint_id = ensure_checkpoint.checkpoint_id;
        is_new := not found;
        exit when found;
        insert into agui.checkpoint (thread_key, checkpoint_no, namespace, checkpoint_id, parent_no, run_id, document, metadata)
        select
            ensure_checkpoint.thread_key, coalesce(max(checkpoint.checkpoint_no), 0) + 1, ensure_checkpoint.namespace,
            ensure_checkpoint.checkpoint_id, ensure_checkpoint.parent_no, ensure_checkpoint.run_id, ensure_checkpoint.document,
            ensure_checkpoint.metadata
        from agui.checkpoint as checkpoint
        where checkpoint.thread_key = ensure_checkpoint.thread_key
        on conflict do nothing
        returning * into kept;
        exit when found;
    end loop;
end
$$;

comment on function agui_internal.ensure_checkpoint(uuid, text, text, bigint, text, json, json) is
    'The row of a checkpoint, and whether it is new: if there is none, the function creates it with '
    'the next number and these contents. Without a document it does not exist for readers.';

revoke execute on function agui_internal.ensure_checkpoint(uuid, text, text, bigint, text, json, json) from public;
