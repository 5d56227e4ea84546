create or replace function agui_internal.texts_of_runs(keys uuid[], run_nos int[])
returns setof agui_internal.said_text
language plpgsql
stable
parallel safe
rows 1000
set search_path = pg_catalog, pg_temp
-- Each look-up is a subquery that cannot be flattened. A join, planned while the tables were empty, reads
-- all batches for each run.
set enable_seqscan = off
set jit = off
as $$
declare
    pieces  constant text[] := agui_internal.event_types('start text', 'continue text', 'chunk text');
    results constant text[] := agui_internal.event_types('add result');
    lists   constant text[] := agui_internal.event_types('list messages');
    starts  constant text[] := agui_internal.event_types('start run');
begin
    return query
    with run as materialized (
        select run.*
        from unnest(keys, run_nos) as listed (thread_key, run_no)
        cross join lateral (
            select *
            from agui.run as stored
            where stored.thread_key = listed.thread_key and stored.run_no = listed.run_no
            offset 0
        ) as run
        where run.status <> 'running'
    ),
    event as (
        select
            batch.thread_key,
            batch.run_no,
            batch.first_seq + member.position - 1 as seq,
            agui_internal.event_time(batch.recorded_at, batch.earlier_us[member.position]) as at,
            member.type,
            agui_internal.json_string_text(member."messageId"::text) as message_id,
            agui_internal.json_string_text(member.role::text) as role,
            agui_internal.json_string_text(member.delta::text) as delta,
            member.content,
            member.messages,
            member.input,
            coalesce(member."subagentRunId"::text, '') as owner
        from run
        cross join lateral (
            select *
            from agui.batch as stored
            where stored.thread_key = run.thread_key
                and stored.run_no = run.run_no
                and stored.first_seq between run.first_seq and run.last_seq
                and (
                    -- What their names have in common.
                    agui_internal.mentions_type(stored.events::text, 'MESSAGE')
                    or agui_internal.mentions_type(stored.events::text, 'TOOL_CALL_R')
                    or agui_internal.mentions_type(stored.events::text, 'RUN_STARTED')
                )
            offset 0
        ) as batch
        cross join lateral rows from (
            json_to_recordset(agui_internal.json_guarded(batch.events)) as (
                type text, "messageId" json, role json, delta json, content json, messages json, input json, "subagentRunId" json
            )
        ) with ordinality as member (type, "messageId", role, delta, content, messages, input, "subagentRunId", position)
        where member.type = any (pieces || results || lists || starts)
    ),
    piece as (
        select
            told.*,
            count(told.message_id) over (partition by told.thread_key, told.run_no, told.owner order by told.seq) as stream
        from event as told
        where told.type = any (pieces)
    ),
    streamed as (
        select
            joined.thread_key, joined.run_no, min(joined.seq) as seq, min(joined.at) as at,
            coalesce((array_agg(joined.role order by joined.seq) filter (where joined.role is not null))[1], 'assistant') as role,
            joined.of_message as message_id,
            left(agui_internal.readable(string_agg(joined.delta, '' order by joined.seq)), 100000) as text
        from (
            -- A chunk without an id continues the chunk before it.
            select piece.*, max(piece.message_id) over (partition by piece.thread_key, piece.run_no, piece.owner, piece.stream) as of_message
            from piece
        ) as joined
        group by joined.thread_key, joined.run_no, joined.of_message
    ),
    listed as (
        select event.thread_key, event.run_no, event.seq, event.at, event.messages
        from event
        where event.type = any (lists)
        union all
        -- What the first event of the run carries counts before what is stored beside it.
        select
            run.thread_key, run.run_no, run.first_seq, run.started_at,
            case when json_typeof(begun.input) = 'object' then begun.input else agui_internal.json_guarded(given.input) end -> 'messages'
        from run
        left join (
            select distinct on (event.thread_key, event.run_no) event.thread_key, event.run_no, event.input
            from event
            where event.type = any (starts)
            order by event.thread_key, event.run_no, event.seq
        ) as begun
            on begun.thread_key = run.thread_key and begun.run_no = run.run_no
        left join lateral (
            select stored.input
            from agui.input as stored
            where stored.thread_key = run.thread_key and stored.run_no = run.run_no and json_typeof(begun.input) is distinct from 'object'
            offset 0
        ) as given on true
    ),
    said as (
        select streamed.thread_key, streamed.run_no, streamed.seq, streamed.at, streamed.role, streamed.message_id, streamed.text
        from streamed
        union all
        select event.thread_key, event.run_no, event.seq, event.at, 'tool', event.message_id, agui_internal.text_of_content(event.content)
        from event
        where event.type = any (results)
        union all
        select
            listed.thread_key, listed.run_no, listed.seq, listed.at,
            agui_internal.json_string_text((message.value -> 'role')::text),
            agui_internal.json_string_text((message.value -> 'id')::text),
            agui_internal.text_of_content(message.value -> 'content')
        from listed
        cross join lateral json_array_elements(case when json_typeof(listed.messages) = 'array' then listed.messages end) as message
        where json_typeof(message.value) = 'object'
    )
    select distinct on (found.thread_key, found.print)
        found.thread_key, found.print, found.run_no, found.seq, found.at, found.role, found.message_id, found.text
    from (
        select said.*, hashtextextended(concat_ws(chr(1), said.role, coalesce(said.message_id, ''), said.text), 0) as print
        from said
        where said.role in ('user', 'assistant', 'tool') and said.text <> ''
    ) as found
    order by found.thread_key, found.print, found.run_no, found.seq;
end
$$;

comment on function agui_internal.texts_of_runs(uuid[], int[]) is
    'The texts of the messages that runs bring, by their events or in their inputs, those in progress left '
    'out: each once in its thread, for the first of the runs that has it. What the system or the '
    'developer says is left out: each thread has the same.';

revoke execute on function agui_internal.texts_of_runs(uuid[], int[]) from public;
