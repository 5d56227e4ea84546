create or replace function agui_internal.orphaned_keys(scope text default null)
returns setof uuid
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    -- The threads of a scope are one range of keys.
    next_key uuid := coalesce(agui_internal.first_key(scope), '00000000-0000-0000-0000-000000000000');
    last_key constant uuid := coalesce(agui_internal.last_key(scope), 'ffffffff-ffff-ffff-ffff-ffffffffffff');
begin
    -- From each key to the next by the primary keys, however many rows it has.
    loop
        next_key := least(
            (select run.thread_key from agui.run as run where run.thread_key > next_key order by run.thread_key limit 1),
            (select batch.thread_key from agui.batch as batch where batch.thread_key > next_key order by batch.thread_key limit 1),
            (select snapshot.thread_key from agui.snapshot as snapshot where snapshot.thread_key > next_key order by snapshot.thread_key limit 1),
            (select message.thread_key from agui.message_version as message where message.thread_key > next_key order by message.thread_key limit 1),
            (select known.thread_key from agui.session_key as known where known.thread_key > next_key order by known.thread_key limit 1),
            (select state.thread_key from agui.session_state as state where state.thread_key > next_key order by state.thread_key limit 1),
            (select checkpoint.thread_key from agui.checkpoint as checkpoint where checkpoint.thread_key > next_key order by checkpoint.thread_key limit 1),
            (select channel.thread_key from agui.channel as channel where channel.thread_key > next_key order by channel.thread_key limit 1),
            (select activity.thread_key from agui.thread_activity as activity where activity.thread_key > next_key order by activity.thread_key limit 1)
        );
        exit when next_key is null or next_key > last_key;
        perform from agui.thread as thread where thread.thread_key = next_key;
        if not found then
            return next next_key;
        end if;
    end loop;
end
$$;

comment on function agui_internal.orphaned_keys(text) is
    'The keys of rows of a scope (null: of all scopes) that no row of agui.thread has. '
    'agui_internal.verify_log gives details for each.';

revoke execute on function agui_internal.orphaned_keys(text) from public;
