create or replace function agui_internal.match_repeat(
    thread_key uuid,
    run_no     int,
    run_first_seq bigint,
    after_seq  bigint,
    events     json,
    subject    text,
    cut_off    boolean,
    out n        int,
    out last_seq bigint
)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    given_n    int := json_array_length(events);
    differs_at bigint;
    run_last_seq bigint;
begin
    with stored as (
        select row_number() over (order by seq) as position, seq, event
        from (
            select batch.first_seq + element.position - 1 as seq, element.value::text as event
            from agui_internal.batches_behind(match_repeat.thread_key, after_seq) as batch
            cross join lateral json_array_elements(batch.events) with ordinality as element (value, position)
            where batch.run_no = match_repeat.run_no
                and batch.first_seq >= run_first_seq
                and batch.first_seq + element.position - 1 > after_seq
            order by batch.first_seq, element.position
            limit given_n
        ) as tail
    )
    select count(stored.seq), max(stored.seq), min(given.position) filter (where given.value::text <> stored.event)
    into n, last_seq, differs_at
    from json_array_elements(events) with ordinality as given (value, position)
    left join stored using (position);

    if differs_at is not null and cut_off then
        -- From here on, the log has the events that were appended on behalf of the writer. The
        -- caller refuses the remaining events of the writer.
        n := differs_at - 1;
    elsif differs_at is not null then
        raise exception using
            errcode = 'UI007',
            message = format('%s: event %s of the call differs from the event in the log after seq %s', subject, differs_at, after_seq),
            detail = format('{"event": %s}', differs_at),
            hint = 'A repeated call must have the same events, byte for byte. Check whether another writer writes to this run.';
    elsif n = 0 and after_seq > 0 then
        select batch.first_seq + batch.n - 1
        into run_last_seq
        from agui.batch as batch
        where batch.thread_key = match_repeat.thread_key and batch.run_no = match_repeat.run_no
        order by batch.first_seq desc
        limit 1;
        if run_last_seq <> after_seq then
            raise exception using
                errcode = 'UI017',
                message = format('%s ends at seq %s, but the writer has seen seq %s', subject, run_last_seq, after_seq),
                hint = 'after_seq must be the seq that the last call for this run returned. If it is, the log was rewound, by a crash without '
                    'synchronous_commit or by a failover: append the events after the seq at which it ends.';
        end if;
    end if;
end
$$;

comment on function agui_internal.match_repeat(uuid, int, bigint, bigint, json, text, boolean) is
    'Returns how many of the given events the log of the run already has after a seq, and the seq '
    'of the last of them. Events are compared byte for byte, whatever batches they were appended '
    'in. UI007: they differ, unless the run was cut off; UI017: the run ends before that seq.';

revoke execute on function agui_internal.match_repeat(uuid, int, bigint, bigint, json, text, boolean) from public;
