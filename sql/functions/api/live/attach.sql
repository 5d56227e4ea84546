create or replace function agui.attach(
    thread_id text,
    run_id    text default null,
    at_seq    bigint default null,
    at_time   timestamptz default null,
    after_seq bigint default 0,
    shape     text default 'snapshot',
    scope     text default ''
)
returns agui.attachment
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    key    constant uuid := agui_internal.visible_thread_key(scope, thread_id);
    behind constant bigint := greatest(after_seq, 0);
    is_standby constant boolean := pg_is_in_recovery();  -- a standby may not have received the events yet
    leaf   agui.run;
    answer agui.attachment;
begin
    if shape is null or shape not in ('snapshot', 'stream', 'events') then
        raise exception using
            errcode = 'UI013',
            message = format('unknown shape %s: use "snapshot", "stream" or "events"', coalesce('"' || shape || '"', 'null'));
    elsif behind > 0 and shape <> 'events' then
        raise exception using
            errcode = 'UI013',
            message = format('attach to thread "%s": shape "%s" contains the whole history, so it cannot begin after seq %s', thread_id, shape, behind),
            hint = 'Omit after_seq: a snapshot replaces what the client has. Or request the shape "events".';
    end if;

    select batch.first_seq + batch.n - 1 into answer.seq
    from agui_internal.batch_with(key, 9223372036854775807) as batch;
    if not found and run_id is null and (behind = 0 or is_standby) then
        answer.running := '{}';
        answer.seq := behind;
        answer.events := '[]';
        return answer;
    end if;
    leaf := agui_internal.find_run(thread_id, run_id, scope);
    if behind > answer.seq and not is_standby then
        raise exception using
            errcode = 'UI017',
            message = format('thread "%s" ends at seq %s, but the reader has already seen seq %s', thread_id, answer.seq, behind),
            hint = 'A crash without synchronous_commit, or a failover, lost the last events. Attach without after_seq.';
    end if;

    answer.run_id := leaf.run_id;
    answer.status := leaf.status;
    answer.running := array(
        select run.run_id
        from agui.run as run
        where run.thread_key = key and run.status = 'running'
        order by run.run_no
    );
    answer.seq := greatest(least(answer.seq, agui_internal.seq_at(key, at_seq, at_time)), 0);
    answer.events := case shape
        when 'events' then agui_internal.lineage_events(thread_id, leaf, behind, answer.seq, with_inputs => false)
        else agui_internal.replay_events(thread_id, leaf, answer.seq, shape)
    end;
    answer.seq := greatest(answer.seq, behind);
    answer.recorded_at := (
        select agui_internal.event_time(batch.recorded_at, batch.earlier_us[answer.seq - batch.first_seq + 1])
        from agui_internal.batch_with(key, answer.seq) as batch
        where answer.seq < batch.first_seq + batch.n
    );
    return answer;
end
$function$;

comment on function agui.attach(text, text, bigint, timestamptz, bigint, text, text) is
    'Returns all that a server needs to show a conversation and to continue it live, as of one '
    'point in time: the history of the lineage of a run (null: the head), and the position to '
    'follow from. agui.poll(array[thread_id], array[seq], array[recorded_at]) then returns what '
    'follows, of all runs of the thread. Messages, calls and steps that are open at the position '
    'stay open in the history, so the next events continue them. Shape snapshot: as agui.replay '
    'returns it; it also works for a client that has seen a part of the history. Shape stream: the '
    'compacted stream (agui.compact_events). Shape events: the events themselves, from after_seq '
    'on, those of thinking as the events of reasoning that they mean. With at_seq or at_time the history and the position end there, at the earlier of the two. '
    'A thread that does not exist yet has no run, no events and position 0. running names the '
    'other runs in progress; their events are not in the history. '
    'Errors: UI001 unknown thread, where a run or after_seq is given, UI002 unknown run, UI008 '
    'invalid arguments, UI012 another thread has the same key, UI013 unknown shape, or one that '
    'does not allow after_seq, UI017 the log ends before after_seq, UI022 a run is in quarantine, '
    'UI023 the fold exceeds a limit.';

revoke execute on function agui.attach(text, text, bigint, timestamptz, bigint, text, text) from public;
