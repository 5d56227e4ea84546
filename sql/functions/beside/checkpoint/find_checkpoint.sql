create or replace function agui_internal.find_checkpoint(thread_id text, checkpoint_id text, namespace text, scope text)
returns agui.checkpoint
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
    key   uuid := agui_internal.checked_thread_key(thread_id, scope);
    found_checkpoint agui.checkpoint;
begin
    if thread_id is null or namespace is null or scope is null then
        raise exception using
            errcode = 'UI008',
            message = 'to find a checkpoint, thread_id, namespace and scope must not be null';
    end if;
    if checkpoint_id is null then
        select * into found_checkpoint
        from agui.checkpoint as checkpoint
        where checkpoint.thread_key = key and checkpoint.namespace = find_checkpoint.namespace and checkpoint.document is not null
        order by checkpoint.checkpoint_no desc
        limit 1;
        return found_checkpoint;
    end if;
    select * into found_checkpoint
    from agui.checkpoint as checkpoint
    where checkpoint.thread_key = key
        and checkpoint.namespace = find_checkpoint.namespace
        and checkpoint.checkpoint_id = find_checkpoint.checkpoint_id
        and checkpoint.document is not null;
    if not found then
        raise exception using
            errcode = 'UI019',
            message = format('checkpoint "%s" of thread "%s"%s is unknown', checkpoint_id, thread_id, ', namespace "' || nullif(namespace, '') || '",'),
            hint = format('select * from agui.checkpoints(%L%s) shows those that there are.', thread_id,
                case when scope <> '' then format(', scope => %L', scope) else '' end);
    end if;
    return found_checkpoint;
end
$$;

comment on function agui_internal.find_checkpoint(text, text, text, text) is
    'Returns the row of a checkpoint (null id: the one saved last in the namespace, or null if '
    'there is none). UI008: no thread, namespace or scope; UI019: unknown checkpoint.';

revoke execute on function agui_internal.find_checkpoint(text, text, text, text) from public;
