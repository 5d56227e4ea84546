create or replace function agui_internal.readers_of_thread(thread_key uuid)
returns json
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('move threads');
    return json_build_object(
        'marks', (
            select coalesce(json_agg(json_build_object('scope', known.scope, 'is_all', known.is_all, 'consumer', known.consumer, 'read_seq', consumed.read_seq)), '[]')
            from agui_internal.consumer_thread as consumed
            join agui.consumer as known
                on known.consumer_key = consumed.consumer_key
            where consumed.thread_key = readers_of_thread.thread_key
        ),
        'requests', (
            select coalesce(json_agg(request), '[]')
            from agui_internal.webhook_request as request
            where request.thread_key = readers_of_thread.thread_key
        )
    );
end
$$;

comment on function agui_internal.readers_of_thread(uuid) is
    'What consumers and webhooks have noted of a thread, for agui_internal.receive_readers of the node '
    'that it is moved to.';

revoke execute on function agui_internal.readers_of_thread(uuid) from public;
