create or replace function agui_internal.lineage_events(thread_id text, leaf agui.run, after_seq bigint, until bigint, with_inputs boolean)
returns json
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
    inputs  agui_internal.input_place[];
    -- The runs that get a RUN_STARTED: those that begin with another event, unless they continue a
    -- chunk stream of their parent, which it would end. Only the fold shows whether there is one.
    bare_no int[];
    -- The events of thinking, if there are any, as those of reasoning that they mean.
    thought_seqs  bigint[];
    thought_types text[];
    thought_ids   text[];
    events json;
begin
    if with_inputs then
        select array_agg(ancestor.run_no) into bare_no
        from agui_internal.ancestors(leaf) as ancestor
        join agui.batch as first
            on first.thread_key = ancestor.thread_key and first.first_seq = ancestor.first_seq
        cross join lateral (
            select element.payload from json_array_elements(first.events) as element (payload) limit 1
        ) as beginning
        left join agui.run as parent
            on parent.thread_key = ancestor.thread_key and parent.run_no = ancestor.parent_no
        -- As a case expression, so that the planner cannot fold what the earlier conditions
        -- exclude.
        where case
            when agui_internal.event_type(beginning.payload) = 'RUN_STARTED' then false
            when parent.run_no is null then true
            else coalesce((agui_internal.state_at(parent, null)).lanes = agui_internal.failed_lanes(), true)
        end;

        select array_agg(place) into inputs
        from (
            select
                array_agg(ancestor.run_no) as run_nos,
                array_agg(coalesce(least(ancestor.last_seq, until), 9223372036854775807)) as through_seqs
            from agui_internal.ancestors(leaf) as ancestor
        ) as lineage
        cross join lateral agui_internal.input_places(leaf.thread_key, lineage.run_nos, lineage.through_seqs) as place;
    end if;

    loop
        select ('[' || coalesce(string_agg(
            case
                when with_inputs
                    and batch.first_seq + element.position - 1 = ancestor.first_seq
                    and (place.seq is null or place.is_start)
                    and ancestor.run_no = any (bare_no)
                then '{"type":"RUN_STARTED","threadId":' || to_json(thread_id) || ',"runId":' || to_json(ancestor.run_id) || '},'
                else ''
            end || case
                when thought.seq is not null then agui_internal.event_of_reasoning(element.payload, thought.type, thought.id)
                when place.seq is null then element.payload::text
                when place.is_start then agui_internal.json_unguard(agui_internal.json_member_set(
                    agui_internal.json_guard(element.payload::text), 'input', agui_internal.json_guard(given.input::text)
                ))
                -- Before the first event of a run that has no RUN_STARTED.
                else '{"type":"RUN_STARTED","threadId":' || to_json(thread_id) || ',"runId":' || to_json(ancestor.run_id)
                    || ',"input":' || given.input || '},' || element.payload
            end,
            ',' order by batch.first_seq, element.position
        ), '') || ']')::json
        into events
        from agui_internal.ancestors(leaf, after_seq) as ancestor
        join agui_internal.batches_behind(leaf.thread_key, after_seq) as batch
            on batch.run_no = ancestor.run_no
                and batch.first_seq between ancestor.first_seq and coalesce(least(ancestor.last_seq, until), 9223372036854775807)
        cross join lateral json_array_elements(batch.events) with ordinality as element (payload, position)
        left join unnest(inputs) as place
            on place.seq = batch.first_seq + element.position - 1
        left join unnest(thought_seqs, thought_types, thought_ids) as thought (seq, type, id)
            on thought.seq = batch.first_seq + element.position - 1
        left join agui.input as given
            on given.thread_key = leaf.thread_key and given.run_no = place.run_no
        where batch.first_seq + element.position - 1 > after_seq
            and (until is null or batch.first_seq + element.position - 1 <= until);
        exit when thought_seqs is not null
            or strpos(events::text, 'THINKING') = 0 and strpos(events::text, '\u00') = 0;
        select
            coalesce(array_agg(thought.seq), '{}'), array_agg(thought.type), array_agg(thought.id)
        into thought_seqs, thought_types, thought_ids
        from agui_internal.ancestors(leaf, after_seq) as ancestor
        cross join lateral agui_internal.thoughts(leaf.thread_key, ancestor.run_no, until) as thought;
        exit when thought_seqs = '{}';
    end loop;
    return events;
end
$$;

comment on function agui_internal.lineage_events(text, agui.run, bigint, bigint, boolean) is
    'The events of the lineage of a run after after_seq, up to a seq (null: all), as a JSON array. '
    'with_inputs inserts the inputs stored beside the events into RUN_STARTED, and a RUN_STARTED '
    'before runs that begin with another event, unless that would end a chunk stream. Events of '
    'thinking come as the events of reasoning that they mean.';

revoke execute on function agui_internal.lineage_events(text, agui.run, bigint, bigint, boolean) from public;
