create or replace function agui.save_checkpoint(
    thread_id     text,
    checkpoint_id text,
    document      json,
    parent_id     text default null,
    namespace     text default '',
    run_id        text default null,
    scope         text default ''
)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
-- Plans made while the tables were small would read all rows of the thread for each look-up.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
    subject  text := agui_internal.checkpoint_subject(thread_id, checkpoint_id);
    key      uuid := agui_internal.own_thread_key(scope, thread_id);
    existing record;
    kept     agui.checkpoint;
    parent   agui.checkpoint;
begin
    perform agui_internal.check_checkpoint_ids(checkpoint_id, namespace, subject, run_id);
    if document is null then
        raise exception using
            errcode = 'UI008',
            message = format('%s: there is no document to save', subject);
    end if;
    perform agui_internal.refuse_large_document(document, subject);
    key := agui_internal.ensure_writable_thread(thread_id, scope);

    if parent_id is not null then
        select * into parent
        from agui.checkpoint as checkpoint
        where checkpoint.thread_key = key
            and checkpoint.namespace = save_checkpoint.namespace
            and checkpoint.checkpoint_id = save_checkpoint.parent_id
            and checkpoint.document is not null;
        if not found then
            raise exception using
                errcode = 'UI003',
                message = format('%s: the parent "%s" is not a checkpoint in namespace "%s" of this thread', subject, parent_id, namespace),
                hint = 'Save the parent first.';
        end if;
    end if;

    select * into existing
    from agui_internal.ensure_checkpoint(key, namespace, checkpoint_id, parent.checkpoint_no, run_id, document);
    kept := existing.kept;
    if kept.document is null and kept.parent_no is null then
        update agui.checkpoint as checkpoint
        set document = save_checkpoint.document, parent_no = parent.checkpoint_no, run_id = save_checkpoint.run_id, saved_at = clock_timestamp()
        where checkpoint.thread_key = key and checkpoint.checkpoint_no = kept.checkpoint_no and checkpoint.document is null;
        if found then
            return kept.checkpoint_no;
        end if;
        -- Another transaction has stored it meanwhile.
        select * into kept from agui.checkpoint as checkpoint where checkpoint.thread_key = key and checkpoint.checkpoint_no = kept.checkpoint_no;
    end if;
    if not existing.is_new and (kept.metadata is not null
        or kept.document::text <> document::text
        or kept.parent_no is distinct from parent.checkpoint_no)
    then
        raise exception using
            errcode = 'UI007',
            message = format('%s was already saved with another document or parent', subject),
            hint = 'A checkpoint is immutable. Save a new version under a new id.';
    end if;
    return kept.checkpoint_no;
end
$$;

comment on function agui.save_checkpoint(text, text, json, text, text, text, text) is
    'Saves a checkpoint of a workflow engine byte for byte and returns its number. The checkpoints '
    'of a thread are numbered 1, 2, 3, … in commit order (those of agui.put_checkpoint: in the order in '
    'which they were first named). parent_id names the checkpoint that it '
    'continues from, in the same namespace. run_id names the run of the log that the engine is working '
    'on, whether it has begun or not: agui.load_checkpoint finds the checkpoint by it. The call is '
    'idempotent: saving the same checkpoint a second time returns the same number. The thread does not '
    'need to have runs. '
    'Errors: UI003 unknown parent, UI007 the id has another document or parent, UI008 no id or no '
    'document, UI011 a limit is exceeded, UI012 another thread has the same key, UI014 the thread '
    'was erased.';

revoke execute on function agui.save_checkpoint(text, text, json, text, text, text, text) from public;
