-- The log says where a message comes from, and nothing else does. So it is read backwards: until all
-- messages are found, and the part that was read last has none of them. Clients send the whole
-- conversation with each run, so a message that only lists have is not yet at its beginning as long
-- as the list before has it, too.
create or replace function agui_internal.message_places(
    run    agui.run,
    at_seq bigint,
    ids    text[],
    roles  text[]
)
returns setof agui_internal.message_place
language plpgsql
stable
parallel safe
rows 100
set search_path = pg_catalog, pg_temp
-- Planned once: a plan takes longer than the work. The planner expects few rows, and would compare
-- each with each.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_nestloop = off
set jit = off
as $function$
declare
    events_at_once constant int := 1000;
    until   constant bigint := coalesce(at_seq, 9223372036854775807);
    brings  constant text[] := agui_internal.event_types('brings messageId', 'brings parentMessageId');
    starts  constant text[] := agui_internal.event_types('brings parentMessageId');
    results constant text[] := agui_internal.event_types('add result');
    of_call constant text[] := agui_internal.event_types('start tool', 'continue tool', 'end tool', 'chunk tool');
    -- A set of text, in which a key is found by binary search.
    wanted  constant jsonb := (select jsonb_object_agg(listed.id, true) from unnest(ids) as listed (id) where listed.id is not null);
    part_nos int[];
    part_ids text[];
    missing text[] := array(select jsonb_object_keys(wanted));    -- nothing that was read brings them
    streamed text[] := '{}';     -- events of their own do
    listed_only text[] := '{}';  -- lists do, and nothing else
    key     constant uuid := run.thread_key;
    through bigint := least(coalesce(run.last_seq, until), until);
    read_to bigint;
    batch   record;
    -- The part of the log to read next: runs, or the end of a long one.
    run_nos int[];
    from_seqs    bigint[];
    through_seqs bigint[];
    size    bigint;
    part    agui_internal.message_mention[];
    news    record;
    mentions agui_internal.message_mention[] := '{}';
begin
    select array_agg(stored.part_no), array_agg(stored.message_id) into part_nos, part_ids
    from agui.input_part as stored
    where stored.thread_key = key and stored.kind = 'message' and wanted ? stored.message_id;

    while wanted is not null and run.run_no is not null loop
        run_nos := '{}';
        from_seqs := '{}';
        through_seqs := '{}';
        size := 0;
        while run.run_no is not null and size < events_at_once loop
            read_to := run.first_seq;
            if through - run.first_seq >= events_at_once - size then
                for batch in
                    select stored.first_seq
                    from agui.batch as stored
                    where stored.thread_key = key and stored.run_no = run.run_no and stored.first_seq between run.first_seq and through
                    order by stored.first_seq desc
                loop
                    read_to := batch.first_seq;
                    exit when through - read_to + 1 >= events_at_once - size;
                end loop;
            end if;
            run_nos := array_append(run_nos, run.run_no);
            from_seqs := array_append(from_seqs, read_to);
            through_seqs := array_append(through_seqs, through);
            size := size + through - read_to + 1;
            if read_to > run.first_seq then
                through := read_to - 1;
            else
                select parent.* into run
                from agui.run as parent
                where parent.thread_key = key and parent.run_no = run.parent_no;
                through := least(coalesce(run.last_seq, until), until);
            end if;
        end loop;

        part := array(select mention from agui_internal.message_mentions(key, run_nos, from_seqs, through_seqs, wanted, part_nos, part_ids) as mention);
        select
            coalesce(array_agg(brought.id) filter (where not brought.is_list), '{}') as streamed,
            coalesce(array_agg(brought.id) filter (where brought.is_list), '{}') as listed,
            coalesce(bool_or(brought.is_oldest), false) as has_any,
            exists (select from unnest(part) as list where list.is_list and list.run_no = run_nos[cardinality(run_nos)]) as has_list
        into news
        from (
            select named.id, mention.is_list, mention.run_no = run_nos[cardinality(run_nos)] as is_oldest
            from unnest(part) as mention
            cross join lateral unnest(
                case when mention.type = any (starts) then array[mention.parent_id, mention.call_id] else array[mention.message_id] end
            ) as named (id)
            where (mention.is_list or mention.type = any (brings)) and wanted ? named.id
        ) as brought;
        missing := array(select unnest(missing) except select unnest(news.streamed || news.listed));
        streamed := streamed || news.streamed;
        listed_only := array(select unnest(listed_only || news.listed) except select unnest(streamed));
        -- Pieces of other messages do not matter; those of calls may, if the call is found.
        mentions := mentions || array(
            select kept
            from unnest(part) as kept
            where kept.type = any (of_call) or kept.lane is not null or wanted ? kept.message_id or kept.entity_id is not null
        );
        exit when missing = '{}' and not news.has_any and (listed_only = '{}' or news.has_list);
    end loop;

    return query
    with mention as materialized (
        select
            told.run_no, told.first_seq, told.last_seq, told.type, told.is_list, told.entity_id,
            told.first_told, told.last_told, told.first_at, told.last_at,
            -- A chunk that names nothing continues the chunks before it.
            case when told.lane is null then told.message_id else first_value(told.message_id) over stream end as message_id,
            case when told.lane is null then told.call_id else first_value(told.call_id) over stream end as call_id,
            case when told.lane is null then told.parent_id else first_value(told.parent_id) over stream end as parent_id
        from (
            select
                listed.*,
                case
                    when listed.lane is not null
                        then count(coalesce(listed.call_id, listed.message_id)) over (partition by listed.run_no, listed.lane, listed.type order by listed.last_seq)
                end as stream
            from unnest(mentions) as listed
        ) as told
        window stream as (partition by told.run_no, told.lane, told.type, told.stream order by told.last_seq)
    ),
    -- A call is in its parent, if that is a message of the assistant, and otherwise in one with its own
    -- id. A result may have that id, too.
    call as materialized (
        select distinct on (mention.call_id) mention.call_id, wanted_message.id as message_id
        from mention
        join unnest(ids, roles) as wanted_message (id, role)
            on wanted_message.id = any (array[mention.parent_id, mention.call_id])
        where mention.type = any (starts) and wanted_message.role = 'assistant'
        order by mention.call_id, mention.first_seq, wanted_message.id = mention.parent_id desc
    ),
    named as (
        select mention.message_id as of_message, mention.*
        from mention
        where mention.type <> all (of_call) and mention.entity_id is null and wanted ? mention.message_id
        union all
        select call.message_id, mention.* from mention join call on call.call_id = mention.call_id where mention.type = any (of_call)
        union all
        select mention.entity_id, mention.* from mention where wanted ? mention.entity_id
        union all
        select call.message_id, mention.* from mention join call on call.call_id = mention.entity_id
    ),
    -- A result may also have the id of the message of its call.
    told as materialized (
        select listed.item, named.*
        from unnest(ids, roles) with ordinality as listed (id, role, item)
        join named on named.of_message = listed.id
        where named.is_list or named.entity_id is not null or (named.type = any (results)) = (listed.role = 'tool')
    ),
    begun as materialized (
        select distinct on (told.item) told.*
        from told
        where told.is_list or told.type = any (brings)
        order by told.item, told.first_seq
    ),
    updated as (
        select distinct on (told.item) told.*
        from told
        join begun on begun.item = told.item and begun.run_no = told.run_no
        where not told.is_list
        order by told.item, told.last_seq desc
    ),
    calls as (
        select
            part_of.item,
            json_agg(
                json_build_object(
                    'toolCallId', part_of.call_id, 'firstSeq', part_of.seqs[1], 'lastSeq', part_of.last_seq,
                    'startedAt', part_of.started_at, 'updatedAt', part_of.updated_at
                )
                order by part_of.seqs[1]
            ) as list
        from (
            select
                told.item,
                told.call_id,
                array_agg(told.first_seq order by told.first_seq) as seqs,
                max(told.last_seq) as last_seq,
                (array_agg(coalesce(agui_internal.json_timestamp(told.first_told::json), told.first_at) order by told.first_seq))[1] as started_at,
                (array_agg(coalesce(agui_internal.json_timestamp(told.last_told::json), told.last_at) order by told.last_seq desc))[1] as updated_at
            from told
            join begun on begun.item = told.item and begun.run_no = told.run_no
            where told.type = any (of_call)
            group by told.item, told.call_id
        ) as part_of
        group by part_of.item
    )
    select
        begun.item::int,
        of_run.run_id,
        begun.first_seq,
        greatest(begun.first_seq, updated.last_seq),
        coalesce(agui_internal.json_timestamp(begun.first_told::json), begun.first_at, of_run.started_at),
        case
            when updated.last_seq > begun.first_seq then coalesce(agui_internal.json_timestamp(updated.last_told::json), updated.last_at)
            else coalesce(agui_internal.json_timestamp(begun.first_told::json), begun.first_at, of_run.started_at)
        end,
        calls.list
    from begun
    cross join lateral (
        select stored.run_id, stored.started_at from agui.run as stored where stored.thread_key = key and stored.run_no = begun.run_no offset 0
    ) as of_run
    left join updated on updated.item = begun.item
    left join calls on calls.item = begun.item;
end
$function$;

comment on function agui_internal.message_places(agui.run, bigint, text[], text[]) is
    'The places of messages in the log of the lineage of a run up to a seq (null: its end), which is '
    'read backwards. ids and roles: those of the messages. No row for a message without an id.';

revoke execute on function agui_internal.message_places(agui.run, bigint, text[], text[]) from public;
