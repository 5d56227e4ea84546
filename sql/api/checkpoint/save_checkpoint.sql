create or replace function agui.save_checkpoint(
    thread_id     text,
    checkpoint_id text,
    document      json,
    parent_id     text default null,
    namespace     text default '',
    scope         text default ''
)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    subject  text := format('checkpoint "%s" of thread "%s"', left(checkpoint_id, 200), left(thread_id, 200));
    key      uuid := agui_internal.own_thread_key(scope, thread_id);
    existing agui.checkpoint;
    parent   agui.checkpoint;
    new_no   bigint;
begin
    if checkpoint_id is null or checkpoint_id = '' or document is null or namespace is null then
        raise exception using
            errcode = 'UI008',
            message = format('%s: a checkpoint needs a non-empty id, a document and a namespace that is not null', subject);
    end if;
    if greatest(octet_length(checkpoint_id), octet_length(namespace)) > 1024 then
        raise exception using
            errcode = 'UI011',
            message = format('%s: the checkpoint id and the namespace are limited to 1,024 bytes each', subject);
    end if;
    perform agui_internal.refuse_large_document(document, subject);
    key := agui_internal.ensure_writable_thread(thread_id, scope);

    if parent_id is not null then
        select * into parent
        from agui.checkpoint as checkpoint
        where checkpoint.thread_key = key
            and checkpoint.namespace = save_checkpoint.namespace
            and checkpoint.checkpoint_id = save_checkpoint.parent_id;
        if not found then
            raise exception using
                errcode = 'UI003',
                message = format('%s: the parent "%s" is not a checkpoint in namespace "%s" of this thread', subject, parent_id, namespace),
                hint = 'Save the parent first.';
        end if;
    end if;

    -- If another transaction inserts the same number first, the insert waits for its commit, then
    -- the loop tries the next one.
    loop
        select * into existing
        from agui.checkpoint as checkpoint
        where checkpoint.thread_key = key
            and checkpoint.namespace = save_checkpoint.namespace
            and checkpoint.checkpoint_id = save_checkpoint.checkpoint_id;
        if existing.checkpoint_no is not null then
            if existing.document::text <> document::text or existing.parent_no is distinct from parent.checkpoint_no then
                raise exception using
                    errcode = 'UI007',
                    message = format('%s was already saved with another document or parent', subject),
                    hint = 'A checkpoint is immutable. Save a new version under a new id.';
            end if;
            return existing.checkpoint_no;
        end if;

        select coalesce(max(checkpoint.checkpoint_no), 0) + 1 into new_no
        from agui.checkpoint as checkpoint
        where checkpoint.thread_key = key;
        insert into agui.checkpoint (thread_key, checkpoint_no, namespace, checkpoint_id, parent_no, document)
        values (key, new_no, namespace, checkpoint_id, parent.checkpoint_no, document)
        on conflict do nothing;
        if found then
            return new_no;
        end if;
    end loop;
end
$$;

comment on function agui.save_checkpoint(text, text, json, text, text, text) is
    'Saves a checkpoint of a workflow engine byte for byte and returns its number. The checkpoints '
    'of a thread are numbered 1, 2, 3, … in commit order. parent_id names the checkpoint that it '
    'continues from, in the same namespace. The call is idempotent: saving the same checkpoint a '
    'second time returns the same number. The thread does not need to have runs. '
    'Errors: UI003 unknown parent, UI007 the id has another document or parent, UI008 no id or no '
    'document, UI011 a limit is exceeded, UI012 another thread has the same key, UI014 the thread '
    'was erased.';

revoke execute on function agui.save_checkpoint(text, text, json, text, text, text) from public;
