create or replace function agui_internal.open_parts(run agui.run, until bigint default null)
returns setof agui_internal.open_part
language plpgsql
stable
parallel safe
rows 10
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    with event as (
        select
            batch.first_seq + field.position - 1 as seq,
            role.does,
            role.opens,
            role.fails as closes,
            role.named_by,
            json_build_object(
                'messageId', field."messageId", 'toolCallId', field."toolCallId", 'stepName', field."stepName", 'subagentRunId', field."subagentRunId"
            ) as names,
            -- A step is identified by its name and its subagent, the others by their id alone.
            case when role.part = 'step' then field."subagentRunId" end as owner,
            field.event
        from (
            select stored.first_seq, agui_internal.json_guarded(stored.events) as events
            from agui.batch as stored
            where stored.thread_key = run.thread_key
                and stored.run_no = run.run_no
                and stored.first_seq >= run.first_seq
                and (until is null or stored.first_seq <= until)
                -- Most batches contain only pieces. A type may be spelled with escapes.
                and (stored.events::text ~ '_(START|END|FINISHED|ERROR)' or strpos(stored.events::text, '\u00') > 0)
            offset 0
        ) as batch
        cross join lateral rows from (
            json_to_recordset(batch.events)
                as (type text, "messageId" text, "toolCallId" text, "stepName" text, "subagentRunId" text),
            json_array_elements(batch.events)
        ) with ordinality as field (type, "messageId", "toolCallId", "stepName", "subagentRunId", event, position)
        join agui_internal.event_roles() as role on role.type = field.type
        where role.does in ('start', 'end')
            and (until is null or batch.first_seq + field.position - 1 <= until)
    ),
    part as (
        select
            event.opens,
            event.closes,
            event.named_by,
            event.names ->> event.named_by as name,
            event.owner,
            max(event.seq) filter (where event.does = 'start') as opened_at,
            max(event.seq) filter (where event.does = 'end') as closed_at
        from event
        group by 1, 2, 3, 4, 5
    )
    select part.opens, part.closes, part.named_by, part.name, part.owner, part.opened_at, event.event
    from part
    join event on event.seq = part.opened_at
    where part.opened_at > coalesce(part.closed_at, 0)
    order by part.opened_at;
end
$$;

comment on function agui_internal.open_parts(agui.run, bigint) is
    'The messages, tool calls, reasoning, steps and subagents that a run has begun and not ended, '
    'up to a seq (null: so far), in the order in which they began. What chunks open is not '
    'included: it is in the fold.';

revoke execute on function agui_internal.open_parts(agui.run, bigint) from public;
