create or replace function agui_internal.attach_at(
    thread_id text,
    run_id    text,
    at_seq    bigint,
    at_time   timestamptz,
    after_seq bigint,
    shape     text,
    scope     text,
    customs_of text,
    part      int,
    part_bytes int,
    out answer agui.attachment,
    out next_part int
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $function$
declare
    key    constant uuid := agui_internal.visible_thread_key(scope, thread_id);
    behind constant bigint := greatest(after_seq, 0);
    is_standby constant boolean := pg_is_in_recovery();  -- a standby may not have received the events yet
    leaf   agui.run;
    sent   record;
begin
    if shape is null or shape not in ('snapshot', 'stream', 'events') then
        raise exception using
            errcode = 'UI013',
            message = format('unknown shape %s: use "snapshot", "stream" or "events"', coalesce('"' || shape || '"', 'null'));
    elsif behind > 0 and shape <> 'events' then
        raise exception using
            errcode = 'UI013',
            message = format('attach to thread "%s": shape "%s" contains the whole history, so it cannot begin after seq %s', thread_id, shape, behind),
            hint = 'A snapshot replaces what the client has: request it without a seq. Or request the shape "events".';
    end if;

    select batch.first_seq + batch.n - 1 into answer.seq
    from agui_internal.batch_with(key, 9223372036854775807) as batch;
    if not found and run_id is null and (behind = 0 or is_standby) then
        answer.running := '{}';
        answer.seq := behind;
        answer.events := '[]';
        return;
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
    if shape = 'snapshot' then
        sent := agui_internal.history_part(thread_id, leaf, answer.seq, customs_of, part, part_bytes);
        answer.events := sent.events;
        next_part := sent.next_part;
    else
        answer.events := case shape
            when 'events' then agui_internal.lineage_events(thread_id, leaf, behind, answer.seq, with_inputs => false)
            else agui_internal.replay_events(thread_id, leaf, answer.seq, shape)
        end;
    end if;
    answer.seq := greatest(answer.seq, behind);
    answer.recorded_at := (
        select agui_internal.event_time(batch.recorded_at, batch.earlier_us[answer.seq - batch.first_seq + 1])
        from agui_internal.batch_with(key, answer.seq) as batch
        where answer.seq < batch.first_seq + batch.n
    );
end
$function$;

comment on function agui_internal.attach_at(text, text, bigint, timestamptz, bigint, text, text, text, int, int) is
    'What agui.attach and agui.attach_part return: the attachment with one part of its history, and '
    'the number of the next part.';

revoke execute on function agui_internal.attach_at(text, text, bigint, timestamptz, bigint, text, text, text, int, int) from public;
