create or replace function agui_internal.contents_of_checkpoint(checkpoint agui.checkpoint, thread_id text)
returns setof agui.checkpoint_content
language plpgsql
stable
parallel safe
rows 10
set search_path = pg_catalog, pg_temp
as $$
declare
    content agui.checkpoint_content;
begin
    content.thread_id := coalesce(thread_id, (select thread.thread_id from agui.thread as thread where thread.thread_key = checkpoint.thread_key));
    content.namespace := checkpoint.namespace;
    content.checkpoint_id := checkpoint.checkpoint_id;
    if checkpoint.parent_no is not null then
        content.parent_id := (
            select parent.checkpoint_id
            from agui.checkpoint as parent
            where parent.thread_key = checkpoint.thread_key and parent.checkpoint_no = checkpoint.parent_no
        );
    end if;
    content.run_id := checkpoint.run_id;
    content.cursor := agui_internal.checkpoint_cursor(checkpoint);
    content.kind := 'document';
    content.type := 'json';
    content.body := checkpoint.document;
    return next content;
    content.kind := 'metadata';
    content.body := checkpoint.metadata;
    return next content;

    content.kind := 'value';
    for content.channel, content.version, content.type, content.body, content.bytes in
        select value.channel, value.version, value.type, value.body, value.bytes
        from agui_internal.values_of_checkpoint(checkpoint) as value
    loop
        return next content;
    end loop;
    content.kind := 'write';
    content.version := null;
    for content.task_path, content.task_id, content.place, content.channel, content.type, content.body, content.bytes in
        select written.task_path, written.task_id, written.place, written.channel, written.type, written.body, written.bytes
        from agui_internal.writes_of_checkpoint(checkpoint) as written
    loop
        return next content;
    end loop;
end
$$;

comment on function agui_internal.contents_of_checkpoint(agui.checkpoint, text) is
    'The pieces of a checkpoint as users see them. thread_id: the id of its thread, if the caller knows '
    'it.';

revoke execute on function agui_internal.contents_of_checkpoint(agui.checkpoint, text) from public;
