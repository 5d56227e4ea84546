create or replace function agui_internal.calls_of_runs(keys uuid[], run_nos int[])
returns setof agui.projected_call
language plpgsql
stable
parallel safe
rows 100
set search_path = pg_catalog, pg_temp
as $$
declare
    starts  constant text[] := agui_internal.event_types('start tool');
    ends    constant text[] := agui_internal.event_types('end tool');
    chunks  constant text[] := agui_internal.event_types('chunk tool');
    results constant text[] := agui_internal.event_types('add result');
    types   constant text[] := starts || ends || chunks || results || agui_internal.event_types('continue tool');
    common  constant text := 'TOOL_CALL_';  -- what they begin with
begin
    return query
    with run as materialized (
        select run.*
        from unnest(keys, run_nos) as listed (thread_key, run_no)
        join agui.run as run
            on run.thread_key = listed.thread_key and run.run_no = listed.run_no and run.status <> 'running'
    ),
    event as (
        select
            batch.thread_key,
            batch.run_no,
            batch.first_seq + element.position - 1 as seq,
            agui_internal.event_time(batch.recorded_at, batch.earlier_us[element.position]) as at,
            member.type,
            agui_internal.json_string_text(member."toolCallId"::text) as call_id,
            member."toolCallName" as name,
            member.delta,
            member.content,
            member.error,
            case when member.type = any (chunks) then coalesce(member."subagentRunId"::text, '') end as owner
        from run
        join agui.batch as batch
            on batch.thread_key = run.thread_key
                and batch.run_no = run.run_no
                and batch.first_seq between run.first_seq and run.last_seq
                and agui_internal.mentions_type(batch.events::text, common)
        cross join lateral json_array_elements(batch.events) with ordinality as element (value, position)
        cross join lateral json_to_record(agui_internal.json_guarded(element.value)) as member (
            type text, "toolCallId" json, "toolCallName" json, delta json, content json, error json, "subagentRunId" json
        )
        where agui_internal.mentions_type(element.value::text, common)
            and member.type = any (types)
    ),
    part as (
        select
            event.*,
            -- A chunk without an id continues the chunk before it.
            case
                when event.owner is null or event.call_id is not null then event.call_id
                else max(event.call_id) over (partition by event.thread_key, event.run_no, event.owner, event.stream)
            end as of_call,
            event.type = any (results) as is_result
        from (
            select
                told.*,
                count(told.call_id) over (partition by told.thread_key, told.run_no, told.owner order by told.seq) as stream
            from event as told
        ) as event
    ),
    call as (
        select
            part.thread_key,
            part.run_no,
            part.of_call as call_id,
            min(part.seq) as seq,
            min(part.at) filter (where not part.is_result and part.name is not null) as started_at,
            (array_agg(agui_internal.json_string_text(part.name::text) order by part.seq) filter (where not part.is_result and part.name is not null))[1] as tool,
            bool_or(part.type = any (ends)) or not bool_or(part.type = any (starts)) as is_complete,
            coalesce(sum(octet_length(part.delta::text) - 2) filter (where not part.is_result), 0) as argument_bytes,
            (array_agg(
                row (part.at, octet_length(part.content::text), agui_internal.tool_error(part.error, part.content))::agui_internal.tool_result
                order by part.seq desc
            ) filter (where part.is_result))[1] as result
        from part
        where part.of_call is not null
        group by part.thread_key, part.run_no, part.of_call
    )
    select
        call.thread_key,
        call.run_no,
        call.call_id,
        row_number() over (partition by call.thread_key, call.run_no order by call.seq, call.call_id collate "C")::int,
        call.tool,
        call.started_at,
        case when call.tool is not null then call.is_complete end,
        case when call.tool is not null then call.argument_bytes end,
        (call.result).at,
        (call.result).bytes,
        (call.result).error,
        false
    from call
    -- Pieces of a call that began in no event have no effect.
    where call.tool is not null or (call.result).at is not null;
end
$$;

comment on function agui_internal.calls_of_runs(uuid[], int[]) is
    'What agui.projected_call is to say of runs, those in progress left out, except for the answers '
    'in their inputs.';

revoke execute on function agui_internal.calls_of_runs(uuid[], int[]) from public;
