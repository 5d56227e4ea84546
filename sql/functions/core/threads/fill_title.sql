create or replace function agui_internal.fill_title(thread_key uuid)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    max_messages constant int := 100;
    body    json;
    derived text;
begin
    perform agui_internal.own_key(thread_key);
    perform
    from agui.thread_activity as activity
    where activity.thread_key = fill_title.thread_key and activity.derived_title is null;
    if not found then
        return;
    end if;

    for body in
        select message.body
        from (
            select stored.body, stored.role
            from agui.message as stored
            where stored.thread_key = fill_title.thread_key
            order by stored.message_no
            limit max_messages
        ) as message
        where message.role = 'user' or message.role is null
    loop
        derived := agui_internal.title_of_message(agui_internal.json_guarded(body));
        exit when derived is not null;
    end loop;
    if derived is null then
        return;
    end if;

    -- A run that begins or ends changes this row: neither waits for the other.
    update agui.thread_activity as activity
    set derived_title = derived
    where activity.thread_key = (
        select untitled.thread_key
        from agui.thread_activity as untitled
        where untitled.thread_key = fill_title.thread_key and untitled.derived_title is null
        for no key update skip locked
    );
end
$$;

comment on function agui_internal.fill_title(uuid) is
    'Sets the title of a thread without a title to that of its first user message, searched in the '
    'first 100 message versions of its snapshots. Compactors call it in their last statement '
    'before the commit, because appends to the thread wait for the row that it locks.';

revoke execute on function agui_internal.fill_title(uuid) from public;
