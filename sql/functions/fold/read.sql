-- Folds for readers: the result of a lineage at a run, up to a seq or a time (fold_at), and what is
-- read from a fold: messages, tool calls, attachments, the state, interrupts.
--
--   caller ─► fold_at ─► fold/runs: nearest snapshot ─► the events behind it ─► agui_internal.fold
--
-- - A read costs what it returns and a bounded tail, because the job keeps a snapshot wherever one
--   pays (upkeep/snapshots).
-- - A read that would fold a run at which a job failed because of the run itself ends with UI022
--   (refuse_quarantined). Attempts that were killed or interrupted do not count. The log can always
--   be read.
-- - What a fold cannot say, such as where a message was said, is read from the log (core/history).

-- Not strict and without a query, so that it is inlined. Calls of replace are several times faster than
-- one of translate.
create or replace function agui_internal.base64_text(value text)
returns text
language sql
immutable
parallel safe
return rtrim(
    replace(replace(replace(replace(replace(replace(value, ' ', ''), E'\t', ''), E'\r', ''), E'\n', ''), '-', '+'), '_', '/'),
    '='
);

comment on function agui_internal.base64_text is
    'Base64 in one spelling: without white space, with the letters + and /, without = at its end.';

create or replace function agui_internal.brings_message(run agui.run, message_id text, wanted text, after_seq bigint)
returns boolean
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
    -- How JSON text spells the id, unless it uses escapes that it need not use. Those of ASCII
    -- characters begin with \u00.
    spelled constant text := substr(to_json(message_id)::text, 2, length(to_json(message_id)::text) - 2);
    escaped constant text := case when message_id ~ '[^\x01-\x7f]' then '\u' else '\u00' end;
    slashed constant boolean := strpos(message_id, '/') > 0;
begin
    if exists (
        select
        from agui.run_input as stored
        left join lateral jsonb_to_recordset(stored.sections) as section (kind text, part_nos int4range[])
            on section.kind = 'message'
        -- The messages may stay in the skeleton.
        cross join lateral (
            select case
                when section.part_nos is null
                    then coalesce(stored.input::text, agui_internal.joined_input(stored.thread_key, stored.skeleton, stored.sections))
            end as text
        ) as input
        where stored.thread_key = run.thread_key
            and stored.run_no = run.run_no
            and case
                when input.text is null then exists (
                    select
                    from agui_internal.parts_in(stored.thread_key, 'message', section.part_nos) as part
                    where part.message_id = wanted
                )
                else (
                    strpos(input.text, spelled) > 0
                    or strpos(input.text, escaped) > 0
                    or slashed and strpos(input.text, '\/') > 0
                ) and agui_internal.lists_message(agui_internal.json_guarded(input.text::json) -> 'messages', wanted)
            end
    ) then
        return true;
    end if;

    return exists (
        select
        from (
            select stored.first_seq, agui_internal.json_guarded(stored.events) as events
            from agui_internal.batches_behind(run.thread_key, greatest(brings_message.after_seq, run.first_seq - 1)) as stored
            where stored.first_seq <= coalesce(run.last_seq, 9223372036854775807)
                and stored.run_no = run.run_no
                and (
                    strpos(stored.events::text, spelled) > 0
                    or strpos(stored.events::text, escaped) > 0
                    or slashed and strpos(stored.events::text, '\/') > 0
                )
            offset 0  -- parse only what passed these tests
        ) as batch
        cross join lateral rows from (
            json_to_recordset(batch.events) as (
                type text, "messageId" json, "parentMessageId" json, "toolCallId" json, messages json, input json
            )
        ) with ordinality as event (type, message_id, parent_id, call_id, messages, input, position)
        where batch.first_seq + event.position - 1 > brings_message.after_seq
            and case
                when event.type = 'MESSAGES_SNAPSHOT' then agui_internal.lists_message(event.messages, wanted)
                when event.type = 'RUN_STARTED' then
                    json_typeof(event.input) = 'object' and agui_internal.lists_message(event.input -> 'messages', wanted)
                -- A call without a parent makes a message with its own id, and so does one whose parent
                -- is not a message of the assistant. Only the fold knows that; it is done once.
                when event.type = any (agui_internal.event_types('brings parentMessageId')) then
                    coalesce(nullif(agui_internal.json_string_text(event.parent_id::text), ''), agui_internal.json_string_text(event.call_id::text)) = wanted
                    or agui_internal.json_string_text(event.call_id::text) = wanted
                        and wanted = any ((select (agui_internal.fold_at(run, null)).message_ids)::text[])
                when event.type = any (agui_internal.event_types('brings messageId')) then
                    agui_internal.json_string_text(event.message_id::text) = wanted
            end
    );
end
$$;

comment on function agui_internal.brings_message is
    'Whether the input of a run, or its events after after_seq, bring a message with an id. wanted '
    'is the id as the fold decodes it. A test of the text keeps most batches from being parsed.';

create or replace function agui_internal.calls_of_fold(
    fold      agui_internal.fold,
    leaf      agui.run,
    until     bigint,
    after_seq bigint,
    streamed  boolean default false
)
returns setof agui.tool_call
language plpgsql
stable
rows 100
set search_path = pg_catalog, pg_temp
set jit = off
as $function$
begin
    return query
    -- If several calls have one id, the first one counts; if a call has several results, the last
    -- one counts.
    with call as (
        select distinct on (call.id) call.*
        from (
            select
                agui_internal.json_string_text(call.call_id) as id,
                agui_internal.json_string_text(call.name) as name,
                agui_internal.json_string_text(call.arguments) as arguments,
                call.message_id,
                call.message_position,
                call.position
            from agui_internal.fold_calls(fold) as call
        ) as call
        order by call.id, call.message_position, call.position
    ),
    result as (
        select distinct on (result.call_id) result.*
        from (
            select
                agui_internal.json_string_text((message.body -> 'toolCallId')::text) as call_id,
                agui_internal.json_unguard((message.body -> 'content')::text)::json as content,
                message.position
            from agui_internal.fold_messages(fold, array['tool']) as message
        ) as result
        order by result.call_id, result.position desc
    ),
    mention as (
        select *
        from agui_internal.event_references(
            leaf,
            until,
            agui_internal.event_types('start tool', 'continue tool', 'end tool', 'chunk tool', 'add result')
                || case when not streamed then agui_internal.event_types('start run', 'list messages') end
        ) as mention
        where mention.call_id is not null
    ),
    story as (
        select
            mention.call_id,
            min(mention.seq) filter (where not mention.is_result) as first_seq,
            max(mention.seq) filter (where not mention.is_result and mention.item = 0) as streamed_seq,
            -- Clients send the whole conversation with every run. A message repeated in a list is
            -- not an update.
            coalesce(
                max(mention.seq) filter (where mention.is_result and mention.item = 0),
                min(mention.seq) filter (where mention.is_result)
            ) as result_seq,
            bool_or(mention.type = any (agui_internal.event_types('start tool'))) as has_start,
            bool_or(mention.type = any (agui_internal.event_types('end tool'))) as has_end
        from mention
        group by mention.call_id
    ),
    source_event as (
        select distinct mention.seq, mention.run_id, mention.created_at from mention
    ),
    open_chunk as (
        select agui_internal.json_string_text((lane.value -> 'id')::text) as call_id
        from json_array_elements(agui_internal.json_guard(fold.lanes)::json) as lane (value)
        where lane.value ->> 'kind' = 'tool'
    )
    select
        call.id,
        call.name,
        call.arguments,
        agui_internal.json_or_null(call.arguments),
        result.content,
        call.message_id,
        run.run_id,
        story.first_seq,
        greatest(story.first_seq, story.streamed_seq, case when result.call_id is not null then story.result_seq end),
        begun.created_at,
        case status.name when 'completed' then ended.created_at when 'cut_off' then run.ended_at end,
        status.name
    from call
    left join story on story.call_id = call.id
    left join source_event as begun on begun.seq = story.first_seq
    left join lateral (
        select * from agui.run as of_call where of_call.thread_key = leaf.thread_key and of_call.run_id = begun.run_id offset 0
    ) as run on true
    left join result on result.call_id = call.id
    left join source_event as ended on ended.seq = story.result_seq
    cross join lateral (
        select
            run.last_seq <= coalesce(until, run.last_seq) and story.streamed_seq is not null as run_has_ended,
            story.has_end or not story.has_start and call.id not in (select open_chunk.call_id from open_chunk) as is_complete
    ) as stage
    cross join lateral (
        select case
            when result.call_id is not null then 'completed'
            when stage.run_has_ended and (run.status in ('cancelled', 'failed', 'cut_off') or not stage.is_complete) then 'cut_off'
            when stage.is_complete then 'called'
            else 'streaming'
        end as name
    ) as status
    where coalesce(story.first_seq, 1) > coalesce(calls_of_fold.after_seq, 0)
        and (not calls_of_fold.streamed or story.streamed_seq is not null)
    order by story.first_seq, call.message_position, call.position;
end
$function$;

comment on function agui_internal.calls_of_fold is
    'The tool calls of a fold, with their places in the log of the lineage of leaf up to a seq '
    '(null: all of it), which is read; only those that began after after_seq. streamed: only those '
    'that have events of their own, not those that a list of messages brought.';

create or replace function agui_internal.fold_attachments(fold agui_internal.fold)
returns setof agui_internal.fold_attachment
language plpgsql
stable
parallel safe
rows 10
set search_path = pg_catalog, pg_temp
as $$
begin
    -- Each function reads its JSON once, for all members: an operator for each of them would hold one more copy
    -- of a large message until the row is done.
    return query
    select
        (row_number() over (order by message.position, part.position))::int,
        message.message_id,
        agui_internal.json_string_text(member.type::text),
        agui_internal.json_string_text(coalesce(source."mimeType", member."mimeType")::text),
        agui_internal.json_string_text(coalesce(
            member.filename,
            case when json_typeof(member.metadata) = 'object' then member.metadata -> 'filename' end
        )::text),
        agui_internal.json_string_text(data.value::text)
    from agui_internal.fold_messages(fold, array['user', 'tool']) as message
    cross join lateral json_to_record(message.body) as body (content json)
    cross join lateral json_array_elements(case when json_typeof(body.content) = 'array' then body.content end)
        with ordinality as part (value, position)
    cross join lateral json_to_record(case when json_typeof(part.value) = 'object' then part.value else '{}' end)
        as member (type json, source json, "mimeType" json, filename json, metadata json, data json)
    cross join lateral json_to_record(case when json_typeof(member.source) = 'object' then member.source else '{}' end)
        as source (type json, "mimeType" json, value json)
    cross join lateral (
        select case
            when source.type::text = '"data"' then source.value
            when member.type::text = '"binary"' then member.data
        end
    ) as data (value)
    where json_typeof(data.value) = 'string';
end
$$;

comment on function agui_internal.fold_attachments is
    'The parts of messages of a fold that hold data, in order: those with a source of the type data, '
    'and those of the older type binary.';

create or replace function agui_internal.state_at(run agui.run, at_seq bigint, at_time timestamptz default null)
returns agui_internal.fold
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
    until constant bigint := agui_internal.seq_at(run.thread_key, at_seq, at_time);
    fold  agui_internal.fold;
begin
    if run.status <> 'running' and (until is null or until >= run.last_seq) then
        select snapshot.through_seq, snapshot.state::text, snapshot.interrupts::text, snapshot.lanes::text
        into fold.through_seq, fold.state, fold.interrupts, fold.lanes
        from agui.snapshot as snapshot
        where snapshot.thread_key = run.thread_key and snapshot.run_no = run.run_no and snapshot.through_seq >= run.last_seq
            and snapshot.rules = agui_internal.rules();
        if found then
            return fold;
        end if;
    end if;
    return agui_internal.fold_at(run, until);
end
$$;

comment on function agui_internal.state_at is
    'agui_internal.fold_at for a read of the state, the interrupts or the open chunk streams: without '
    'the messages, where a snapshot has the rest.';

create or replace function agui_internal.unanswered_calls_at(run agui.run)
returns table (
    call_id   text,
    arguments text
)
language plpgsql
stable
rows 10
set search_path = pg_catalog, pg_temp
as $$
declare
    fold agui_internal.fold;
begin
    begin
        fold := agui_internal.fold_at(run, null);
    exception
        when sqlstate 'UI022' or sqlstate 'UI023' then
            return;  -- no client has what cannot be folded
    end;
    return query
    select named.call_id, min(agui_internal.json_string_text(call.arguments))
    from agui_internal.fold_calls(fold) as call
    cross join lateral (select agui_internal.json_string_text(call.call_id) as call_id offset 0) as named
    where named.call_id not in (
        select coalesce(agui_internal.json_string_text((message.body -> 'toolCallId')::text), '')
        from agui_internal.fold_messages(fold, array['tool']) as message
    )
    group by named.call_id;
end
$$;

comment on function agui_internal.unanswered_calls_at is
    'The tool calls that the conversation has at the end of a run, and to which it has no result, with their arguments.';

create or replace function agui_internal.fold_at(run agui.run, at_seq bigint, at_time timestamptz default null)
returns agui_internal.fold
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
    until constant bigint := agui_internal.seq_at(run.thread_key, at_seq, at_time);
    fold  agui_internal.fold;
begin
    -- Once down a long lineage, not in each step that follows.
    if until < run.first_seq then
        run := agui_internal.run_at(run, until);
    end if;
    -- Usually a run that has ended has a snapshot of all of it, or none.
    if run.status <> 'running' and (until is null or until >= run.last_seq) then
        fold := agui_internal.load_snapshot(run.thread_key, run.run_no);
        if fold.through_seq >= run.last_seq then
            return fold;
        end if;
    end if;
    perform agui_internal.refuse_quarantined(run, until);
    return agui_internal.fold_run(run.thread_key, run.run_no, until, agui_internal.fold_base(run.thread_key, run.run_no, until));
end
$$;

comment on function agui_internal.fold_at is
    'Folds the lineage of a run up to a seq or a point in time, the earlier of the two (null: to '
    'the end), from the nearest snapshot.';

create or replace function agui_internal.refuse_quarantined(run agui.run, until bigint, of_job boolean default false)
returns void
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    failed record;
begin
    -- Usually there is no such note, and this is one look-up in an index.
    perform
    from agui_internal.job_note as note
    where note.job in ('compact', 'compact_running')
        and note.thread_key = run.thread_key
        and note.run_no > 0
        and (note.speaks_against_run or of_job and note.attempts > 1);
    if not found then
        return;
    end if;
    select member.run_id, note.speaks_against_run, note.error
    into failed
    from agui_internal.job_note as note
    join agui.run as member
        on member.thread_key = note.thread_key and member.run_no = note.run_no
    where note.thread_key = run.thread_key
        and (note.speaks_against_run or of_job and note.attempts > 1)
        and case note.job
            when 'compact' then member.log_bytes is null and member.first_seq <= coalesce(until, 9223372036854775807)
            -- A read of its beginning may succeed.
            when 'compact_running' then member.status = 'running' and until is null and not of_job
            else false
        end
        and exists (select from agui_internal.ancestors(run) as member_of where member_of.run_no = member.run_no)
    order by note.run_no
    limit 1;
    if found then
        raise exception using
            errcode = 'UI022',
            message = format('run "%s" is in quarantine: compaction %s%s',
                failed.run_id,
                case when failed.speaks_against_run then 'failed at it' else 'was interrupted at it several times' end,
                coalesce(': ' || failed.error, '')),
            hint = 'Its events can still be read (agui.events). agui.quarantine says when compaction retries; once the cause is gone, agui.retry lets compaction and reads retry at once.';
    end if;
end
$$;

comment on function agui_internal.refuse_quarantined is
    'Raises UI022 if compaction failed at a run on the lineage that is to be folded, up to a seq '
    '(null: all of it), with an error that speaks against the run (agui_internal.failure_kind): a '
    'read would fail alike, and take as long. of_job: also if compaction was interrupted there '
    'twice, because the run may have caused it.';

create or replace function agui_internal.fold_calls(fold agui_internal.fold)
returns setof agui_internal.fold_call
language plpgsql
stable
parallel safe
rows 1000  -- otherwise a join would be planned for one row
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select
        message.position,
        message.message_id,
        call.position,
        (call.value -> 'id')::text,
        (function.value -> 'name')::text,
        (function.value -> 'arguments')::text
    from agui_internal.fold_messages(fold, array['assistant']) as message
    cross join lateral json_array_elements(
        case when json_typeof(message.body -> 'toolCalls') = 'array' then message.body -> 'toolCalls' end
    ) with ordinality as call (value, position)
    cross join lateral (
        select case when json_typeof(call.value -> 'function') = 'object' then call.value -> 'function' end
    ) as function (value)
    where json_typeof(call.value) = 'object';
end
$$;

comment on function agui_internal.fold_calls is
    'The tool calls of the assistant messages of a fold, in order.';

create or replace function agui_internal.fold_messages(fold agui_internal.fold, roles text[])
returns setof agui_internal.fold_message
language plpgsql
stable
parallel safe
rows 1000  -- otherwise a join would be planned for one row
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select place.position, place.id, place.role, agui_internal.json_guarded(place.body::json)
    from unnest(fold.message_ids, fold.roles, fold.bodies) with ordinality as place (id, role, body, position)
    where place.role = any (fold_messages.roles);
end
$$;

comment on function agui_internal.fold_messages is
    'The messages of a fold with one of the given roles, in order.';

create or replace function agui_internal.turns_of(fold agui_internal.fold, compared text[])
returns agui_internal.turn[]
language sql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select array(
        select agui_internal.turn_of(
            coalesce(message.id, ''), message.role,
            case when message.role = 'user' and coalesce(message.id, '') = any (compared) then agui_internal.json_guarded(message.body::json) -> 'content' end
        )
        from unnest(fold.message_ids, fold.roles, fold.bodies) with ordinality as message (id, role, body, position)
        order by message.position
    )
$$;

comment on function agui_internal.turns_of is
    'The messages of a fold as agui.branch_point compares them, with the content of those alone that have the ids compared: it may be an image.';

create or replace function agui_internal.sent_turns(messages json)
returns agui_internal.turn[]
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select array(
        select agui_internal.turn_of(coalesce(agui_internal.json_string_text(sent.id::text), ''), coalesce(sent.role, ''), sent.content)
        from rows from (json_to_recordset(agui_internal.json_guarded(messages)) as (id json, role text, content json)) with ordinality as sent (id, role, content, position)
        order by sent.position
    )
$$;

comment on function agui_internal.sent_turns is 'The messages of a RunAgentInput as agui.branch_point compares them.';

create or replace function agui_internal.turn_of(id text, role text, content json)
returns agui_internal.turn
language plpgsql
immutable
parallel safe
as $$
declare
    is_instruction constant pg_catalog.bool := role operator(pg_catalog.=) any ('{system,developer}');
    compared pg_catalog.jsonb;
begin
    if role operator(pg_catalog.=) 'user' then
        compared := agui_internal.json_guard_numbers(content::pg_catalog.text);
        if pg_catalog.jsonb_typeof(compared) operator(pg_catalog.=) 'array' then
            compared := agui_internal.parts_to_compare(content);
        end if;
    end if;
    return row(
        id, role,
        not is_instruction and role operator(pg_catalog.<>) all ('{activity,reasoning}'),
        not is_instruction and role operator(pg_catalog.<>) 'activity' and id operator(pg_catalog.<>) '',
        pg_catalog.jsonb_build_array(id, role, compared)
    )::agui_internal.turn;
end
$$;

comment on function agui_internal.turn_of is 'A message, of whose content (guarded JSON) that of a user counts.';

-- Protocol 1.0 does not have parts that name a file by its id alone, so clients drop them.
create or replace function agui_internal.parts_to_compare(parts json)
returns jsonb
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select jsonb_agg(part.value order by part.position)
    from jsonb_array_elements(
        agui_internal.json_guard_numbers(coalesce(agui_internal.parts_as_read(parts), parts::text))::jsonb
    ) with ordinality as part (value, position)
    where part.value ->> 'type' is distinct from 'binary'
$$;

comment on function agui_internal.parts_to_compare is 'The parts of a content (guarded JSON) that all clients keep.';

create or replace function agui_internal.turns_in(turns agui_internal.turn[])
returns agui_internal.turn[]
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select array(
        select row(turn.id, turn.role, turn.is_turn, turn.is_named, turn.key)::agui_internal.turn
        from unnest(turns) with ordinality as turn
        where turn.is_turn
        order by turn.ordinality
    )
$$;

comment on function agui_internal.turns_in is 'Those of messages that all clients keep, in order.';

create or replace function agui_internal.named_ids(turns agui_internal.turn[])
returns text[]
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select array(select turn.id from unnest(turns) as turn where turn.is_named)
$$;

comment on function agui_internal.named_ids is 'The ids by which messages may be found.';

create or replace function agui_internal.ids_of_answers(turns agui_internal.turn[])
returns text[]
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select array(
        select turn.id from unnest(turns) as turn where turn.is_named
        except
        select turn.id from unnest(turns) as turn where turn.role = 'user'
    )
$$;

comment on function agui_internal.ids_of_answers is 'The ids of what agents said.';
