create or replace function agui_internal.verify_saved(thread_key uuid)
returns setof agui.verify_row
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
        with key as (
            select
                coalesce(known.key, state.key) as key,
                known.last_version,
                max(state.version) as newest
            from (select * from agui.session_key as known where known.thread_key = verify_saved.thread_key) as known
            full join (select * from agui.session_state as state where state.thread_key = verify_saved.thread_key) as state using (key)
            group by 1, 2
        ),
        checkpoint as (
            select
                checkpoint.checkpoint_no, checkpoint.checkpoint_id, checkpoint.namespace, checkpoint.parent_no,
                coalesce(lag(checkpoint.checkpoint_no) over (order by checkpoint.checkpoint_no), 0) + 1 as expected_no,
                parent.checkpoint_no is not null and parent.namespace = checkpoint.namespace as has_parent
            from agui.checkpoint as checkpoint
            left join agui.checkpoint as parent
                on parent.thread_key = checkpoint.thread_key and parent.checkpoint_no = checkpoint.parent_no
            where checkpoint.thread_key = verify_saved.thread_key
        ),
        channel as (
            select channel.channel_no, channel.name, channel.parts, count(part.part_no) as stored, coalesce(max(part.part_no), 0) as newest
            from agui.channel as channel
            left join agui.channel_part as part using (thread_key, channel_no)
            where channel.thread_key = verify_saved.thread_key
            group by channel.channel_no, channel.name, channel.parts
        ),
        reference as (
            select value.channel_no, format('version %s', value.version) as subject, value.part_nos
            from agui.channel_value as value
            where value.thread_key = verify_saved.thread_key
            union all
            select written.channel_no, format('what task "%s" wrote after checkpoint number %s', written.task_id, written.checkpoint_no), written.part_nos
            from agui.checkpoint_write as written
            where written.thread_key = verify_saved.thread_key
        )
        select null::text, problem.text, 'damage'
        from (
            select 1 as kind, key.key as place, 0::bigint as number,
                case
                    when key.last_version is null then format('session state of the key "%s" is not numbered', key.key)
                    when key.newest is null then format('version %s of session state of the key "%s" is missing, the newest one', key.last_version, key.key)
                    when key.newest < key.last_version then
                        format('version %s of session state of the key "%s" is missing, the newest one is %s', key.last_version, key.key, key.newest)
                    else format('session state of the key "%s" has version %s, beyond the last number given, %s', key.key, key.newest, key.last_version)
                end as text
            from key
            where key.newest is distinct from key.last_version
            union all
            select 2, state.key, state.version,
                format('version %s of session state of the key "%s" belongs to run number %s, which does not exist', state.version, state.key, state.run_no)
            from agui.session_state as state
            left join agui.run as run
                on run.thread_key = state.thread_key and run.run_no = state.run_no
            where state.thread_key = verify_saved.thread_key and state.run_no <> 0 and run.run_no is null
            union all
            select 3, '', checkpoint.checkpoint_no,
                format('checkpoint "%s" has the number %s, not %s: checkpoints are missing', checkpoint.checkpoint_id, checkpoint.checkpoint_no, checkpoint.expected_no)
            from checkpoint
            where checkpoint.checkpoint_no <> checkpoint.expected_no
            union all
            select 4, '', checkpoint.checkpoint_no,
                format('the parent of checkpoint "%s", number %s, does not exist in its namespace', checkpoint.checkpoint_id, checkpoint.parent_no)
            from checkpoint
            where checkpoint.parent_no is not null and not checkpoint.has_parent
            union all
            select 5, channel.name, channel.channel_no,
                format('channel "%s" has %s parts up to number %s, not %s', channel.name, channel.stored, channel.newest, channel.parts)
            from channel
            where channel.stored <> channel.parts or channel.newest <> channel.parts
            union all
            select 6, coalesce(channel.name, ''), reference.channel_no,
                case
                    when channel.channel_no is null then format('%s belongs to channel number %s, which does not exist', reference.subject, reference.channel_no)
                    else format('%s of channel "%s" refers to parts beyond number %s', reference.subject, channel.name, channel.newest)
                end
            from reference
            left join channel using (channel_no)
            where channel.channel_no is null
                or exists (select from unnest(reference.part_nos) as run where upper(run) > channel.newest + 1 or lower(run) < 1)
        ) as problem
        order by problem.kind, problem.place, problem.number;
end
$$;

comment on function agui_internal.verify_saved(uuid) is
    'The damage of the session state and the checkpoints of a thread: numbers, runs, parents, and the '
    'parts of channels. The contents of documents are not checked.';

revoke execute on function agui_internal.verify_saved(uuid) from public;
