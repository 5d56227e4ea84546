-- Facts about runs, taken from the log once: for reports over all conversations, the list of open
-- questions, and the search.
--
--    project_step     the next 200 changed runs (run.changed_in) below the horizon of the snapshot
--    facts_of_runs    one pass over their batches
--    project_runs     into projected_run, projected_call, projected_interrupt, projected_usage
--    projection       (agui_internal) the place; the first call, also in another cluster, reads all
--                     runs by key
--
-- - A row is a function of the log of its run alone, so the order in which runs are read does not
--   matter, and a rebuild gives the same rows. The exception: a child may bring results of calls
--   with its input. So the calls of a run are stored before the answers of its children are looked
--   for, and its children are projected with it. Such a result is a row of its own run, which the
--   view joins.
-- - A group that fails is read run by run. What fails alone gets a note, by which it is found
--   again. Go and SQL call the same step.
-- - Runs and facts are looked up one by one (offset 0): a plan that joins them, made while a table
--   was empty, would read all of it in each step.
-- - An interrupt waits until another run of its thread begins, or it expires. Beginnings write no
--   facts, so is_open says that it may wait, and agui.waiting asks still_waits of each row. The job
--   closes what a thread asked when it comes to a later run of it, and what has expired
--   (settle_interrupts). A closed one never waits again. Null, from before the column, counts as
--   open.
-- - With agui.enable_search the same step stores the texts of messages, each once in its thread,
--   for the first run that the job finds it in. A view over snapshots would miss branches that
--   ended. If a run no longer says a text, the runs of its thread are read once more for it.
-- - The scope and the role are words of the index, which no parser makes of a text. The search has
--   the rights of the owner and checks the caller's scopes first, because @@ is not leakproof: a
--   policy would keep the planner from the index.
-- - Facts have no version of rules. They stay until the job has read their run again.
--
-- `make bench ARGS=facts` compares its CPU with that of compaction.

create or replace function agui_internal.failures_of_run(run agui.run, until bigint)
returns setof agui_internal.tool_failure
language plpgsql
stable
parallel safe
rows 10
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    begun_at constant bigint := run.first_seq;
    parent   agui.run;
    open     text[] := '{}';
    failure  agui_internal.tool_failure;
begin
    select stored.* into parent
    from agui.run as stored
    where stored.thread_key = run.thread_key and stored.run_no = run.parent_no;
    -- The client of the run answers the calls that its parent left open.
    if parent.status <> 'running' then
        open := agui_internal.unanswered_calls(parent);
    end if;

    for failure in
        -- The last result of a call counts.
        select result.*
        from (
            select distinct on (told.call_id) told.*
            from (
                select
                    event.seq, event.at, event.call_id, null::text as tool, agui_internal.tool_error(event.error, event.content) as error
                from agui_internal.events_of_calls(array[run], until) as event
                where event.ending is null and event.is_result and event.has_effect
                union all
                select
                    begun_at, run.started_at, awaited.call_id, null,
                    agui_internal.tool_error(message.value -> 'error', message.value -> 'content')
                from json_array_elements(
                    (select case when json_typeof(input.messages) = 'array' then input.messages end
                     from (select case when open <> '{}' then agui_internal.input_of_run(run) -> 'messages' end) as input (messages))
                ) as message (value)
                cross join lateral (
                    select case when json_typeof(message.value) = 'object' then agui_internal.json_string_text((message.value -> 'toolCallId')::text) end as call_id
                ) as awaited
                where awaited.call_id = any (open) and begun_at <= until
            ) as told
            order by told.call_id, told.seq desc
        ) as result
        where result.error is not null
        order by result.seq
    loop
        failure.tool := coalesce(agui_internal.name_of_call(run, failure.call_id), agui_internal.name_of_call(parent, failure.call_id));
        return next failure;
    end loop;
end
$$;

comment on function agui_internal.failures_of_run is
    'The results of tool calls that are errors, in the events of a run up to a seq and in its input: '
    'of that, the answers to calls that the parent left open. Reads the run and its parent.';

create or replace function agui_internal.open_interrupts(run agui.run)
returns setof agui.projected_interrupt
language plpgsql
stable
parallel safe
rows 1
set search_path = pg_catalog, pg_temp
as $$
declare
    asking constant agui.run := agui_internal.asking_run(run);
begin
    return query
    select asked.*
    from agui_internal.last_finish(asking) as finish
    cross join lateral agui_internal.interrupts_of_end(asking, finish.interrupts, finish.at) as asked;
end
$$;

comment on function agui_internal.open_interrupts is
    'The interrupts that a restore of a run has, expired ones too: of the run itself, or of one before it.';

-- role: worker
create or replace function agui_internal.project_step()
returns int
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    -- Of a step, which is a transaction: some ten milliseconds.
    most_runs constant int := 200;
    first_key constant uuid := '00000000-0000-0000-0000-000000000000';
    epoch     constant text := agui_internal.epoch();
    horizon   constant xid8 := pg_snapshot_xmin(pg_current_snapshot());
    state     agui_internal.projection;
    runs      record;
begin
    perform agui_internal.refuse_unless_operator('compute facts');
    select * into state from agui_internal.projection for update;
    if state.epoch is distinct from epoch then
        insert into agui_internal.projection as kept (epoch, changed_in, thread_key, run_no, scan_key, scan_no)
        values (epoch, horizon, first_key, 0, first_key, 0)
        on conflict (is_only) do update
        set epoch = excluded.epoch, changed_in = excluded.changed_in, thread_key = excluded.thread_key, run_no = excluded.run_no,
            scan_key = excluded.scan_key, scan_no = excluded.scan_no
        returning * into state;
    end if;

    select array_agg(note.thread_key) as keys, array_agg(note.run_no) as run_nos into runs
    from (
        select *
        from agui_internal.job_note as failed
        where failed.job = 'project' and (failed.next_at is null or failed.next_at <= clock_timestamp())
        limit most_runs
    ) as note;
    if runs.keys is not null then
        for place in 1 .. cardinality(runs.keys) loop
            perform agui_internal.project_alone(runs.keys[place], runs.run_nos[place]);
        end loop;
        return cardinality(runs.keys);
    end if;

    if state.scan_key is not null then
        select array_agg(run.thread_key order by run.thread_key, run.run_no) as keys, array_agg(run.run_no order by run.thread_key, run.run_no) as run_nos
        into runs
        from (
            select every_run.thread_key, every_run.run_no
            from agui.run as every_run
            where (every_run.thread_key, every_run.run_no) > (state.scan_key, state.scan_no)
            order by every_run.thread_key, every_run.run_no
            limit most_runs
        ) as run;
        update agui_internal.projection
        set scan_key = runs.keys[cardinality(runs.keys)], scan_no = runs.run_nos[cardinality(runs.keys)], projected_at = clock_timestamp();
    else
        select
            array_agg(run.thread_key order by run.changed_in, run.thread_key, run.run_no) as keys,
            array_agg(run.run_no order by run.changed_in, run.thread_key, run.run_no) as run_nos,
            max(run.changed_in) as changed_in
        into runs
        from agui_internal.changed_after(
            state.changed_in, state.thread_key, state.run_no, most_runs, first_key, 'ffffffff-ffff-ffff-ffff-ffffffffffff'
        ) as run;
        if runs.keys is null then
            return agui_internal.settle_interrupts();
        end if;
        update agui_internal.projection
        set changed_in = runs.changed_in, thread_key = runs.keys[cardinality(runs.keys)], run_no = runs.run_nos[cardinality(runs.keys)],
            projected_at = clock_timestamp();
    end if;

    if runs.keys is null then
        return agui_internal.project_step();  -- all runs are read, now what was changed
    end if;
    begin
        perform agui_internal.project_runs(runs.keys, runs.run_nos);
    exception
        when others then
            for place in 1 .. cardinality(runs.keys) loop
                perform agui_internal.project_alone(runs.keys[place], runs.run_nos[place]);
            end loop;
    end;
    perform agui_internal.settle_interrupts();
    return cardinality(runs.keys);
end
$$;

comment on function agui_internal.project_step is
    'Projects the next 200 runs or so: those that failed and are due, then all runs if the job has '
    'not read them yet, then those that were changed. Then settles interrupts. Returns how many; 0: there '
    'are none.';

create or replace function agui_internal.project_alone(thread_key uuid, run_no int)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.project_runs(array[thread_key], array[run_no]);
    perform agui_internal.note_success('project', thread_key, array[run_no]);
exception
    when others then
        insert into agui_internal.job_note as note (job, thread_key, run_no, attempts, code, error, next_at)
        values ('project', thread_key, run_no, 1, sqlstate, sqlerrm, agui_internal.back_off(1))
        on conflict on constraint job_note_pkey do update
        set attempts = note.attempts + 1,
            code = excluded.code,
            error = excluded.error,
            next_at = agui_internal.back_off(note.attempts + 1),
            noted_at = clock_timestamp();
end
$$;

comment on function agui_internal.project_alone is
    'Projects one run, or notes why that failed and when to retry it.';

create or replace function agui_internal.project_runs(keys uuid[], run_nos int[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    runs     agui.run[];  -- that have ended
    children agui.run[];
    affected agui.run[];
    following record;
    -- What they add to their conversations, if all of it is searched.
    news     agui_internal.run_news[];
    -- Texts that were of the runs.
    said_keys uuid[];
    prints    bigint[];
    said_in   int[];
begin
    -- agui.erase waits, or is waited for.
    perform from agui.thread as thread where thread.thread_key = any (keys) order by thread.thread_key for key share;
    if exists (
        select
        from unnest(keys, run_nos) as listed (thread_key, run_no)
        -- Each is looked up: a plan that was made when there were no facts would read all that came since.
        cross join lateral (
            select
            from agui.projected_run as projected
            where projected.thread_key = listed.thread_key and projected.run_no = listed.run_no
            offset 0
        ) as projected
    ) then
        delete from agui.projected_run as gone
        using unnest(keys, run_nos) as listed (thread_key, run_no)
        where gone.thread_key = listed.thread_key and gone.run_no = listed.run_no;
        delete from agui.projected_interrupt as gone
        using unnest(keys, run_nos) as listed (thread_key, run_no)
        where gone.thread_key = listed.thread_key and gone.run_no = listed.run_no;
        delete from agui.projected_usage as gone
        using unnest(keys, run_nos) as listed (thread_key, run_no)
        where gone.thread_key = listed.thread_key and gone.run_no = listed.run_no;
        delete from agui.projected_call as gone
        using unnest(keys, run_nos) as listed (thread_key, run_no)
        where gone.thread_key = listed.thread_key and gone.run_no = listed.run_no;
        with gone as (
            delete from agui.message_text as text
            using unnest(keys, run_nos) as listed (thread_key, run_no)
            where text.thread_key = listed.thread_key and text.run_no = listed.run_no
            returning text.thread_key, text.print, text.run_no
        )
        select array_agg(gone.thread_key), array_agg(gone.print), array_agg(gone.run_no) into said_keys, prints, said_in from gone;
    end if;
    select array_agg(found.run) into runs
    from unnest(keys, run_nos) as listed (thread_key, run_no)
    cross join lateral (
        select run
        from agui.run as run
        where run.thread_key = listed.thread_key and run.run_no = listed.run_no and run.status <> 'running'
        offset 0
    ) as found;
    if exists (select from agui_internal.search) then
        news := array(select told from agui_internal.news_of_runs(runs) as told);
    end if;
    with fact as materialized (
        select * from agui_internal.facts_of_runs(runs, news)
    ),
    run_facts as (
        insert into agui.projected_run select (fact.run_fact).* from fact where fact.run_fact is distinct from null
    ),
    call_facts as (
        insert into agui.projected_call select (fact.call_fact).* from fact where fact.call_fact is distinct from null
    ),
    interrupt_facts as (
        insert into agui.projected_interrupt select (fact.interrupt_fact).* from fact where fact.interrupt_fact is distinct from null
    )
    insert into agui.projected_usage select (fact.usage_fact).* from fact where fact.usage_fact is distinct from null;

    -- What the threads asked: the runs change what waits. Another branch, or an answer that failed, may open again what was closed.
    update agui.projected_interrupt as asked
    set is_open = current.is_open
    from (
        -- Which calls wait is found once they are due (agui_internal.settle_calls).
        select concerned.row, case when (concerned.asked).is_call is not true then agui_internal.may_wait(concerned.asked) end as is_open
        from (select distinct listed.thread_key from unnest(keys) as listed (thread_key)) as thread
        cross join lateral (
            select run
            from agui.run as run
            where run.thread_key = thread.thread_key
            order by run.run_no desc
            limit 1
        ) as head
        cross join lateral (select (agui_internal.asking_run(head.run)).run_no offset 0) as asking
        cross join lateral (
            select stored.ctid as row, stored as asked
            from agui.projected_interrupt as stored
            where stored.thread_key = thread.thread_key and stored.is_open is not false
            union all
            select stored.ctid, stored
            from agui.projected_interrupt as stored
            where stored.thread_key = thread.thread_key and stored.run_no = asking.run_no and not stored.is_open
            union all
            -- Another branch may not have the result.
            select stored.ctid, stored
            from agui.projected_interrupt as stored
            where stored.thread_key = thread.thread_key
                and stored.run_no <= (head.run).parent_no and (head.run).parent_no < (head.run).run_no - 1
                and stored.is_call and not stored.is_open
                and not exists (
                    select
                    from agui.projected_call as result
                    where result.thread_key = stored.thread_key and result.call_id = stored.tool_call_id and result.result_at is not null
                        and result.run_no > stored.run_no and result.run_no <= (head.run).parent_no
                    offset 0
                )
        ) as concerned
    ) as current
    where asked.ctid = current.row and asked.is_open is distinct from current.is_open;

    -- A run that continues one of them answers calls of it.
    select array_agg(found.run) into children
    from unnest(keys, run_nos) as listed (thread_key, run_no)
    cross join lateral (
        select run
        from agui.run as run
        where run.thread_key = listed.thread_key and run.parent_no = listed.run_no and run.status <> 'running'
        offset 0
    ) as found
    cross join lateral (
        select
        from agui.projected_run as projected
        where projected.thread_key = (found.run).thread_key and projected.run_no = (found.run).run_no
        offset 0
    ) as projected
    where not exists (
        select
        from unnest(keys, run_nos) as other (thread_key, run_no)
        where other.thread_key = (found.run).thread_key and other.run_no = (found.run).run_no
    );
    if children is not null then
        delete from agui.projected_call as answer
        using unnest(children) as child
        where answer.thread_key = child.thread_key and answer.run_no = child.run_no and answer.is_answer;
    end if;
    insert into agui.projected_call select * from agui_internal.answers_of_runs(runs || children);
    perform agui_internal.index_texts(news);

    -- What they do not say any more, another run may, also one before those that still do: of a branch, whose input has it.
    select array_agg(run) into affected
    from agui.projected_run as other
    join agui.run as run on run.thread_key = other.thread_key and run.run_no = other.run_no
    where other.thread_key in (
        select gone.thread_key
        from unnest(said_keys, prints, said_in) as gone (thread_key, print, run_no)
        where not exists (
            select
            from agui.message_text as text
            where text.thread_key = gone.thread_key and text.print = gone.print and text.run_no <= gone.run_no
        )
    );
    if affected is not null then
        perform agui_internal.index_texts(array(select told from agui_internal.news_of_runs(affected) as told));
    end if;

    -- A later run that was projected before them may go on with a call of theirs.
    if exists (
        select
        from unnest(runs) as listed
        cross join lateral (
            select
            from agui.projected_run as projected
            where projected.thread_key = listed.thread_key and projected.run_no > listed.run_no
            limit 1
        ) as later
    ) then
        select array_agg(later.thread_key) as keys, array_agg(later.run_no) as run_nos into following
        from (
            select distinct other.thread_key, other.run_no
            from unnest(runs) as listed
            cross join lateral (
                select call.call_id
                from agui.projected_call as call
                where call.thread_key = listed.thread_key and call.run_no = listed.run_no and call.tool is not null
                offset 0
            ) as begun
            cross join lateral (
                select call.thread_key, call.run_no
                from agui.projected_call as call
                where call.thread_key = listed.thread_key and call.call_id = begun.call_id and call.run_no > listed.run_no and not call.is_answer
                offset 0
            ) as other
            where not exists (
                select
                from unnest(keys, run_nos) as known (thread_key, run_no)
                where known.thread_key = other.thread_key and known.run_no = other.run_no
            )
        ) as later;
        if following.keys is not null then
            perform agui_internal.project_runs(following.keys, following.run_nos);
        end if;
    end if;
end
$$;

comment on function agui_internal.project_runs is
    'Projects runs: stores what agui.run_fact and its like, and agui.search, say of them, in place of what '
    'was stored before. Runs in progress, and those that are gone, are left out.';

create or replace function agui_internal.facts_of_runs(runs agui.run[], news agui_internal.run_news[] default null)
returns table (
    run_fact       agui.projected_run,
    call_fact      agui.projected_call,
    interrupt_fact agui.projected_interrupt,
    usage_fact     agui.projected_usage
)
language plpgsql
stable
rows 1000
set search_path = pg_catalog, pg_temp
as $$
declare
    tokens      constant text[] := agui_internal.event_types('continue text', 'chunk text');
    token_types constant text := 'TEXT_MESSAGE_C';  -- what they begin with
    starts      constant text[] := agui_internal.event_types('start tool');
    ends        constant text[] := agui_internal.event_types('end tool');
    chunks      constant text[] := agui_internal.event_types('chunk tool');
begin
    return query
    with told as materialized (
        select * from agui_internal.events_of_calls(runs)
    ),
    called as materialized (
        select
            event.thread_key,
            event.run_no,
            event.call_id,
            min(event.seq) as seq,
            min(event.at) filter (where not event.is_result and event.name is not null) as started_at,
            (array_agg(event.name order by event.seq desc) filter (where not event.is_result and event.name is not null))[1] as tool,
            bool_or(event.type = any (ends)) or not bool_or(event.type = any (starts)) as is_complete,
            coalesce(sum(octet_length(event.delta::text) - 2) filter (where not event.is_result), 0) as argument_bytes,
            -- What its events say is what the fold has, unless something else may have changed it.
            bool_or(event.type = any (chunks) or strpos(event.delta::text, '\u') > 0)
                or min(event.seq) filter (where event.type = any (starts)) > min(event.seq) filter (where not event.is_result) as is_odd,
            (array_agg(
                row (event.at, octet_length(agui_internal.json_unguard(event.content::text)), agui_internal.tool_error(event.error, event.content))::agui_internal.tool_result
                order by event.seq desc
            ) filter (where event.is_result))[1] as result
        from told as event
        where event.ending is null and event.has_effect and event.call_id is not null
        group by event.thread_key, event.run_no, event.call_id
    ),
    changed as materialized (
        select told.*
        from agui_internal.news_of_runs((
            select array_agg(run)
            from unnest(runs) as run
            where news is null
                and exists (select from called where called.thread_key = run.thread_key and called.run_no = run.run_no)
                and (
                    exists (select from called where called.thread_key = run.thread_key and called.run_no = run.run_no and called.is_odd)
                    or run.last_seq > run.end_seq
                    or exists (
                        select
                        from agui.batch as batch
                        where batch.thread_key = run.thread_key
                            and batch.run_no = run.run_no
                            and batch.first_seq between run.first_seq and run.last_seq
                            and (
                                agui_internal.mentions_type(batch.events::text, 'MESSAGES_SNAPSHOT')
                                or agui_internal.mentions_type(batch.events::text, 'ACTIVITY')
                            )
                    )
                )
        )) as told
        where told.call_id is not null
        union all
        select told.*
        from unnest(news) as told
        where told.call_id is not null
    ),
    listed_result as (
        select changed.thread_key, changed.run_no, changed.call_id, (array_agg(changed.result order by changed.seq desc))[1] as result
        from changed
        join called on called.thread_key = changed.thread_key and called.run_no = changed.run_no and called.call_id = changed.call_id
        where changed.role is not null and changed.seq > called.seq
        group by changed.thread_key, changed.run_no, changed.call_id
    ),
    -- A call that an earlier run of the lineage began goes on.
    repeated as (
        select distinct called.thread_key, called.run_no, called.call_id
        from called
        cross join lateral (
            select before.run_no
            from agui.projected_call as before
            where before.thread_key = called.thread_key and before.call_id = called.call_id
                and before.run_no < called.run_no and before.tool is not null
            union all
            select other.run_no
            from called as other
            where other.thread_key = called.thread_key and other.call_id = called.call_id
                and other.run_no < called.run_no and other.tool is not null
            offset 0
        ) as earlier
        join unnest(runs) as run on run.thread_key = called.thread_key and run.run_no = called.run_no
        where called.tool is not null
            and earlier.run_no in (select ancestor.run_no from agui_internal.ancestors(run) as ancestor)
    ),
    call as (
        select
            called.thread_key, called.run_no, called.call_id, called.seq, called.started_at, called.is_complete,
            coalesce(called.result, listed_result.result) as result,
            case when called.tool is not null and repeated.call_id is null then coalesce(folded.tool, called.tool) end as tool,
            coalesce(folded.argument_bytes, called.argument_bytes) as argument_bytes
        from called
        left join changed as folded
            on folded.thread_key = called.thread_key and folded.run_no = called.run_no and folded.call_id = called.call_id and folded.role is null
        left join listed_result
            on listed_result.thread_key = called.thread_key and listed_result.run_no = called.run_no and listed_result.call_id = called.call_id
        left join repeated
            on repeated.thread_key = called.thread_key and repeated.run_no = called.run_no and repeated.call_id = called.call_id
    )
    select
        row (run.thread_key, run.run_no, run.changed_in, counted.events, counted.bytes, token.at, why.error_code, why.error_message)::agui.projected_run,
        null::agui.projected_call, null::agui.projected_interrupt, null::agui.projected_usage
    from unnest(runs) as run
    left join lateral (
        select end_of_it.error_code, end_of_it.error_message
        from agui_internal.why_ended(run, 1000) as end_of_it
        where run.status in ('failed', 'cut_off')
        offset 0
    ) as why on true
    cross join lateral (
        -- Brackets and commas do not count: they depend on the batches. So does batch.text_bytes, by some bytes.
        select
            coalesce(sum(batch.n), 0) as events,
            coalesce(sum(octet_length(batch.events::text) - batch.n - 1), 0) as bytes
        from agui.batch as batch
        where batch.thread_key = run.thread_key
            and batch.run_no = run.run_no
            and batch.first_seq between run.first_seq and run.last_seq
        offset 0
    ) as counted
    left join lateral (
        select first.at
        from agui.batch as batch
        cross join lateral (
            select agui_internal.event_time(batch.recorded_at, batch.earlier_us[element.position]) as at
            from json_array_elements(batch.events) with ordinality as element (value, position)
            where agui_internal.mentions_type(element.value::text, token_types)
                and agui_internal.json_guarded(element.value) ->> 'type' = any (tokens)
            order by element.position
            limit 1
        ) as first
        where batch.thread_key = run.thread_key
            and batch.run_no = run.run_no
            and batch.first_seq between run.first_seq and run.last_seq
            and agui_internal.mentions_type(batch.events::text, token_types)
        order by batch.first_seq
        limit 1
    ) as token on true

    union all
    select
        null,
        row (
            call.thread_key,
            call.run_no,
            call.call_id,
            row_number() over (partition by call.thread_key, call.run_no order by call.seq, call.call_id collate "C"),
            call.tool,
            case when call.tool is not null then call.started_at end,
            case when call.tool is not null then call.is_complete end,
            case when call.tool is not null then call.argument_bytes end,
            (call.result).at,
            (call.result).bytes,
            (call.result).error,
            false
        )::agui.projected_call,
        null, null
    from call
    -- Pieces of a call that began in no event have no effect.
    where call.tool is not null or (call.result).at is not null

    union all
    select null, null, asked, null
    from unnest(runs) as run
    cross join lateral agui_internal.last_finish(run) as finish
    cross join lateral agui_internal.interrupts_of_end(run, finish.interrupts, finish.at) as asked
    where run.status in ('interrupted', 'failed', 'cut_off')

    union all
    select
        null, null,
        row (run.thread_key, run.run_no, asked.place, null, null, null, asked.call_id, told.at, null, null, true, null)::agui.projected_interrupt,
        null
    from (
        select call.thread_key, call.run_no, array_agg(call.call_id order by call.seq) as ids, array_agg(call.tool order by call.seq) as tools
        from call
        where call.tool is not null and call.is_complete and (call.result).at is null
        group by call.thread_key, call.run_no
    ) as unanswered
    join unnest(runs) as run on run.thread_key = unanswered.thread_key and run.run_no = unanswered.run_no and run.status = 'finished'
    join told on told.thread_key = run.thread_key and told.run_no = run.run_no and told.ending is not null
    -- If the client has tools, the agent calls the others itself.
    cross join lateral (select agui_internal.tools_of_run(run) as names offset 0) as given
    cross join lateral unnest(unanswered.ids, unanswered.tools) with ordinality as asked (call_id, tool, place)
    where given.names is null or asked.tool = any (given.names)

    union all
    select
        null, null, null,
        row (run.thread_key, run.run_no, entry.*)::agui.projected_usage
    from told
    join unnest(runs) as run on run.thread_key = told.thread_key and run.run_no = told.run_no
    cross join lateral agui_internal.usage_of_run(run, told.ending) as entry
    where told.ending is not null;
end
$$;

comment on function agui_internal.facts_of_runs is
    'What agui.projected_run, agui.projected_call, agui.projected_interrupt and agui.projected_usage '
    'are to say of runs that have ended, except for the answers in their inputs '
    '(agui_internal.answers_of_runs). Of each row one column is not null.';

create or replace function agui_internal.news_of_runs(runs agui.run[])
returns setof agui_internal.run_news
language plpgsql
stable
rows 1000
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_nestloop = on
set jit = off
as $$
declare
    run    agui.run;
    before agui_internal.fold;
    after  agui_internal.fold;
    last   agui.run;  -- the run whose end `after` is
    parent agui.run;
    found  record;
    -- The messages that are new or changed, with their positions.
    run_keys uuid[] := '{}';
    run_nos  int[] := '{}';
    ids      text[] := '{}';
    roles    text[] := '{}';
    bodies   text[] := '{}';
    places   bigint[] := '{}';
begin
    foreach run in array array(select listed from unnest(runs) as listed order by listed.thread_key, listed.run_no) loop
        begin
            -- The runs of a conversation often follow each other: each is folded once.
            if run.parent_no is null then
                before := agui_internal.fold_empty();
            elsif run.thread_key = last.thread_key and run.parent_no = last.run_no then
                before := after;
            else
                select stored.* into parent
                from agui.run as stored
                where stored.thread_key = run.thread_key and stored.run_no = run.parent_no;
                before := agui_internal.fold_at(parent, null);
            end if;
            last := null;
            after := agui_internal.load_snapshot(run.thread_key, run.run_no);
            if after.through_seq < run.last_seq then
                perform agui_internal.refuse_quarantined(run, null);
                after := agui_internal.fold_runs(before, run.thread_key, array[run.run_no], array[run.first_seq - 1], array[run.last_seq]);
                after.state_patches := '{}';
            end if;
            last := run;
        exception
            when sqlstate 'UI022' or sqlstate 'UI023' then
                continue;  -- no client has what cannot be folded
        end;

        for found in
            select listed.id, listed.role, listed.body, listed.position
            from unnest(after.message_ids, after.roles, after.bodies) with ordinality as listed (id, role, body, position)
            where listed.role in ('user', 'assistant', 'tool')
                and listed.body not in (select known.body from unnest(before.bodies) as known (body))
        loop
            run_keys := array_append(run_keys, run.thread_key);
            run_nos := array_append(run_nos, run.run_no);
            ids := array_append(ids, found.id);
            roles := array_append(roles, found.role);
            bodies := array_append(bodies, found.body);
            places := array_append(places, found.position);
        end loop;
    end loop;

    return query
    with message as materialized (
        select told.thread_key, told.run_no, told.id, told.role, told.position, agui_internal.json_guarded(told.body::json) as body
        from unnest(run_keys, run_nos, ids, roles, bodies, places) as told (thread_key, run_no, id, role, body, position)
    ),
    of_run as materialized (
        select of_message.thread_key, of_message.run_no, of_message.first_seq, of_message.last_seq, of_message.started_at
        from unnest(runs) as of_message
        where (of_message.thread_key, of_message.run_no) in (select message.thread_key, message.run_no from message)
    ),
    event as (
        select
            of_run.thread_key,
            of_run.run_no,
            batch.first_seq + element.position - 1 as seq,
            agui_internal.event_time(batch.recorded_at, batch.earlier_us[element.position]) as at,
            member.*
        from of_run
        cross join lateral (
            select *
            from agui.batch as stored
            where stored.thread_key = of_run.thread_key
                and stored.run_no = of_run.run_no
                and stored.first_seq between of_run.first_seq and of_run.last_seq
                and agui_internal.brings_messages(stored.events::text)
            offset 0
        ) as batch
        cross join lateral json_array_elements(batch.events) with ordinality as element (value, position)
        cross join lateral json_to_record(agui_internal.json_guarded(element.value)) as member (
            type text, "messageId" json, "toolCallId" json, "parentMessageId" json, messages json, input json
        )
        where agui_internal.brings_messages(element.value::text)
    ),
    place as (
        select event.thread_key, event.run_no, named.id, min(event.seq) as seq, min(event.at) as at
        from event
        cross join lateral (
            select agui_internal.json_string_text(own.id::text) as id
            from (values (event."messageId"), (event."parentMessageId"), (event."toolCallId")) as own (id)
            where own.id is not null
            union all
            select case when json_typeof(item.message) = 'object' then agui_internal.json_string_text((item.message -> 'id')::text) end
            from (values (event.messages), (case when json_typeof(event.input) = 'object' then event.input -> 'messages' end)) as list (messages)
            cross join lateral json_array_elements(case when json_typeof(list.messages) = 'array' then list.messages end) as item (message)
        ) as named
        group by event.thread_key, event.run_no, named.id
    )
    select
        of_run.thread_key, of_run.run_no, coalesce(place.seq, of_run.first_seq), coalesce(place.at, of_run.started_at),
        message.role, message.id, agui_internal.text_of_content(message.body -> 'content'),
        case
            when message.role = 'tool' then row (
                coalesce(place.at, of_run.started_at), octet_length(agui_internal.json_unguard((message.body -> 'content')::text)),
                agui_internal.tool_error(message.body -> 'error', message.body -> 'content')
            )::agui_internal.tool_result
        end,
        case when message.role = 'tool' then agui_internal.json_string_text((message.body -> 'toolCallId')::text) end,
        null::text, null::bigint
    from message
    join of_run on of_run.thread_key = message.thread_key and of_run.run_no = message.run_no
    left join place on place.thread_key = message.thread_key and place.run_no = message.run_no and place.id = message.id
    union all
    (
        -- Of several calls with one id the first counts.
        select distinct on (call.thread_key, call.run_no, call.id)
            call.thread_key, call.run_no, null, null, null, call.message_id, null, null,
            call.id,
            agui_internal.json_string_text((call.function -> 'name')::text),
            octet_length(agui_internal.json_unguard((call.function -> 'arguments')::text)) - 2
        from (
            select
                message.thread_key, message.run_no, message.id as message_id, message.position, item.place,
                agui_internal.json_string_text((item.call -> 'id')::text) as id,
                item.call -> 'function' as function
            from message
            cross join lateral json_array_elements(
                case when message.role = 'assistant' and json_typeof(message.body -> 'toolCalls') = 'array' then message.body -> 'toolCalls' end
            ) with ordinality as item (call, place)
            where json_typeof(item.call) = 'object'
        ) as call
        where json_typeof(call.function) = 'object'
        order by call.thread_key, call.run_no, call.id, call.position, call.place
    );
end
$$;

comment on function agui_internal.news_of_runs is
    'What runs that have ended add to their conversations, according to the fold: messages of users, assistants and '
    'tools, and tool calls. A run that cannot be folded adds nothing.';

-- It is inlined.
create or replace function agui_internal.brings_messages(text text)
returns boolean
language sql
immutable
parallel safe
return strpos(text, '_START') > 0
    or strpos(text, '_CHUNK') > 0
    or strpos(text, '_RESULT') > 0
    or strpos(text, '_SNAPSHOT') > 0
    or strpos(text, '"ACTIVITY"') > 0
    or strpos(text, '\u00') > 0 and text ~ '\\u00[45]';

comment on function agui_internal.brings_messages is
    'Whether JSON text may contain an event that brings a message or a tool call. False: it contains none.';

create or replace function agui_internal.interrupts_of_end(run agui.run, interrupts json, at timestamptz)
returns setof agui.projected_interrupt
language plpgsql
stable
parallel safe
rows 1
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    select
        run.thread_key,
        run.run_no,
        listed.position::int,
        agui_internal.json_string_text((listed.value -> 'id')::text),
        agui_internal.json_string_text((listed.value -> 'reason')::text),
        left(agui_internal.json_string_text((listed.value -> 'message')::text), 1000),
        agui_internal.json_string_text((listed.value -> 'toolCallId')::text),
        at,
        agui_internal.json_timestamp(listed.value -> 'expiresAt'),
        null::boolean,
        null::boolean,
        null::text
    from json_array_elements(interrupts) with ordinality as listed (value, position)
    where json_typeof(listed.value) = 'object';
end
$$;

comment on function agui_internal.interrupts_of_end is
    'What agui.projected_interrupt is to say of a run, given the interrupts of its last RUN_FINISHED and when that was '
    'recorded (agui_internal.last_finish). Not whether it waits.';

create or replace function agui_internal.tools_of_run(run agui.run)
returns text[]
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    tools constant json := agui_internal.input_of_run(run) -> 'tools';
begin
    return (
        select array_agg(agui_internal.json_string_text((tool.value -> 'name')::text))
        from json_array_elements(case when json_typeof(tools) = 'array' then tools end) as tool (value)
        where json_typeof(tool.value) = 'object'
    );
end
$$;

comment on function agui_internal.tools_of_run is
    'The names of the tools of the client that the input of a run lists; null: it lists none.';

create or replace function agui_internal.answers_of_runs(runs agui.run[])
returns setof agui.projected_call
language plpgsql
stable
parallel safe
rows 10
set search_path = pg_catalog, pg_temp
as $$
declare
    list_type constant text := 'MESSAGES_SNAPSHOT';
begin
    return query
    select
        answer.thread_key,
        answer.run_no,
        answer.call_id,
        (answer.last_place + row_number() over (partition by answer.thread_key, answer.run_no order by answer.seq, answer.position))::int,
        null::text,
        null::timestamptz,
        null::boolean,
        null::bigint,
        answer.at,
        octet_length(agui_internal.json_unguard((answer.message -> 'content')::text))::bigint,
        agui_internal.tool_error(answer.message -> 'error', answer.message -> 'content'),
        true
    from (
        select distinct on (run.thread_key, run.run_no, awaited.call_id)
            run.thread_key,
            run.run_no,
            awaited.call_id,
            -- The client may have taken its time.
            least(run.started_at, parent.ended_at) as at,
            message.value as message,
            list.seq,
            message.position,
            (
                select coalesce(max(known.place), 0)
                from agui.projected_call as known
                where known.thread_key = run.thread_key and known.run_no = run.run_no and not known.is_answer
            ) as last_place
        from unnest(runs) as run
        cross join lateral (
            select stored.ended_at
            from agui.run as stored
            where stored.thread_key = run.thread_key and stored.run_no = run.parent_no
            offset 0
        ) as parent
        cross join lateral (
            select array_agg(call.call_id) as call_ids
            from agui.projected_call as call
            where call.thread_key = run.thread_key
                and call.run_no = run.parent_no
                and call.tool is not null
                and call.result_at is null
                and not exists (
                    select
                    from agui.projected_call as own
                    where own.thread_key = run.thread_key and own.run_no = run.run_no and own.call_id = call.call_id and not own.is_answer
                )
        ) as open
        -- Most runs are not read.
        cross join lateral (
            select 0 as seq, agui_internal.input_of_run(run) -> 'messages' as messages
            where open.call_ids is not null
            union all
            select batch.first_seq + element.position - 1, element.event -> 'messages'
            from agui.batch as batch
            cross join lateral (
                select event.position, agui_internal.json_guarded(event.value) as event
                from json_array_elements(batch.events) with ordinality as event (value, position)
                where agui_internal.mentions_type(event.value::text, list_type)
            ) as element
            where open.call_ids is not null
                and batch.thread_key = run.thread_key
                and batch.run_no = run.run_no
                and batch.first_seq between run.first_seq and run.last_seq
                and agui_internal.mentions_type(batch.events::text, list_type)
                and element.event ->> 'type' = list_type
                and (run.status <> 'failed' or batch.first_seq + element.position - 1 <= run.end_seq)
            offset 0
        ) as list
        cross join lateral json_array_elements(case when json_typeof(list.messages) = 'array' then list.messages end)
            with ordinality as message (value, position)
        cross join lateral (
            select case when json_typeof(message.value) = 'object' then agui_internal.json_string_text((message.value -> 'toolCallId')::text) end as call_id
        ) as awaited
        where awaited.call_id = any (open.call_ids)
        order by run.thread_key, run.run_no, awaited.call_id, list.seq desc, message.position desc
    ) as answer;
end
$$;

comment on function agui_internal.answers_of_runs is
    'What agui.projected_call is to say of the answers that the inputs of runs and their lists of messages bring: results of '
    'calls that the run before them left open, because its client makes them; they count from the end of that run. What '
    'agui_internal.facts_of_runs says of the calls must be stored, of that run too.';

create or replace function agui_internal.tool_error(error json, content json)
returns text
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    text text := agui_internal.json_string_text(content::text);
begin
    -- Some agents write the result as JSON, and then as the JSON of that text.
    if text ~ '^\s*"(Error|\s*\{)' and text ~ '^\s*"([^"\\[:cntrl:]]|\\(["\\/bfnrt]|u[0-9a-fA-F]{4}))*"\s*$' then
        text := agui_internal.json_string_text(agui_internal.json_guard(btrim(text, e' \t\n\r')));
    end if;
    return left(
        case
            when error::text not in ('null', 'false', '""') then coalesce(agui_internal.json_string_text(error::text), error::text)
            -- What LangGraph and the servers of MCP write. Nothing else is taken for a failure.
            when text ~ '^Error\M' or text ~ '^\s*\{' and text ~ '^\s*\{\s*"error"\s*:\s*(?!\s|null|false|"")|"isError"\s*:\s*true' then text
        end,
        1000
    );
end
$$;

comment on function agui_internal.tool_error is
    'What failed, according to the members of a result of a tool call (TOOL_CALL_RESULT or a tool '
    'message, guarded): error; else content, if that begins with the word Error or is an object that '
    'begins with a member error or has "isError": true, or is the JSON string of such a '
    'text. Null: nothing failed. The first 1000 characters.';

create or replace function agui_internal.input_of_run(run agui.run)
returns json
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    place agui_internal.input_place;
    input json;
begin
    select * into place from agui_internal.input_places(run.thread_key, array[run.run_no], array[coalesce(run.last_seq, 9223372036854775807)]);
    if place.run_no is not null then
        select given.input into input from agui.input as given where given.thread_key = run.thread_key and given.run_no = run.run_no;
        return agui_internal.json_guarded(input);
    end if;
    return (
        select event.input
        from agui.batch as batch
        cross join lateral json_to_recordset(agui_internal.json_guarded(batch.events)) as event (type text, input json)
        where batch.thread_key = run.thread_key
            and batch.run_no = run.run_no
            and batch.first_seq between run.first_seq and coalesce(run.last_seq, 9223372036854775807)
            and (strpos(batch.events::text, 'RUN_STARTED') > 0 or strpos(batch.events::text, '\u00') > 0)
            and event.type = any (agui_internal.event_types('start run'))
            and json_typeof(event.input) = 'object'
        order by batch.first_seq
        limit 1
    );
end
$$;

comment on function agui_internal.input_of_run is
    'The input of a run (guarded), which RUN_STARTED carries or which is stored beside the events; null: none.';

create or replace function agui_internal.index_texts(news agui_internal.run_news[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
-- Words of more than 2 KB are left out, with a notice for each.
set client_min_messages = warning
as $$
declare
    language regconfig;
begin
    select search.language::regconfig into language from agui_internal.search as search;
    if not found then
        return;
    end if;
    insert into agui.message_text as kept (thread_key, print, run_no, seq, said_at, role, message_id, text, words)
    select
        said.*,
        to_tsvector(language, said.text) || array_to_tsvector(array[
            agui_internal.word_of('scope', agui_internal.scope_key(said.thread_key)::text), agui_internal.word_of('role', said.role)
        ])
    from agui_internal.texts_of_runs(news) as said
    -- Most texts are kept already, for each input repeats those before it.
    where not exists (
        select
        from agui.message_text as known
        where known.thread_key = said.thread_key and known.print = said.print and known.run_no <= said.run_no
        offset 0
    )
    on conflict (thread_key, print) do update
    set run_no = excluded.run_no, seq = excluded.seq, said_at = excluded.said_at;
end
$$;

comment on function agui_internal.index_texts is
    'Stores in agui.message_text what runs bring and their threads do not have, or have of a later run, if search is on.';

create or replace function agui_internal.texts_of_runs(news agui_internal.run_news[])
returns setof agui_internal.said_text
language plpgsql
immutable
parallel safe
rows 1000
set search_path = pg_catalog, pg_temp
set jit = off
as $$
begin
    return query
    select distinct on (found.thread_key, found.print)
        found.thread_key, found.print, found.run_no, found.seq, found.at, found.role, found.message_id, found.text
    from (
        select said.*, hashtextextended(concat_ws(chr(1), said.role, coalesce(said.message_id, ''), said.text), 0) as print
        from unnest(news) as said
        where said.role is not null and said.text is not null
    ) as found
    order by found.thread_key, found.print, found.run_no, found.seq;
end
$$;

comment on function agui_internal.texts_of_runs is
    'The texts of the messages that runs bring (agui_internal.news_of_runs): each once in its thread, for the first '
    'of the runs that has it. What the system or the developer says is left out: each thread has the same.';

create or replace function agui_internal.settle_interrupts()
returns int
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
-- The queue is read in its order, from the index that has it: another one, which has all that are open, may look cheaper.
set enable_seqscan = off
set enable_sort = off
set jit = off
as $$
declare
    most_rows constant int := 1000;
    now       constant timestamptz := clock_timestamp();
    rows      tid[];
begin
    select array_agg(due.ctid) into rows
    from (
        select asked.ctid
        from agui.projected_interrupt as asked
        where asked.is_open is not false and asked.is_call is not true and asked.is_open is null
        order by asked.is_open, asked.expires_at
        limit most_rows
        for update skip locked  -- not one whose thread is being erased
    ) as due;
    if rows is null then
        select array_agg(due.ctid) into rows
        from (
            select asked.ctid
            from agui.projected_interrupt as asked
            where asked.is_open is not false and asked.is_call is not true and asked.is_open and asked.expires_at <= now
            order by asked.is_open, asked.expires_at
            limit most_rows
            for update skip locked
        ) as due;
    end if;
    if rows is null then
        return 0;
    end if;
    update agui.projected_interrupt as asked
    set is_open = agui_internal.may_wait(asked)
    where asked.ctid = any (rows);
    return cardinality(rows);
end
$$;

comment on function agui_internal.settle_interrupts is
    'Sets agui.projected_interrupt.is_open of up to 1000 interrupts: those of which it is not known, else those '
    'that have expired. Returns of how many; 0: there are none.';

create or replace function agui_internal.settle_calls_of(thread_key uuid, due timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    last    agui.run;
    lineage int[];
begin
    -- A run in progress is to answer what the run before it has open.
    select run.* into last
    from agui.run as run
    where run.thread_key = settle_calls_of.thread_key
    order by run.run_no desc
    limit 1;
    if last.status = 'running' then
        select run.* into last
        from (values (last.parent_no)) as head (parent_no)
        left join agui.run as run on run.thread_key = settle_calls_of.thread_key and run.run_no = head.parent_no;
    end if;
    lineage := array(
        select member.run_no
        from agui_internal.ancestors(last, (
            select first.first_seq
            from agui.projected_interrupt as asked
            join agui.run as first on first.thread_key = asked.thread_key and first.run_no = asked.run_no
            where asked.thread_key = settle_calls_of.thread_key and asked.is_open is not false and asked.is_call
            order by asked.run_no
            limit 1
        )) as member
    );

    -- Of most calls the facts know the result.
    update agui.projected_interrupt as asked
    set is_open = false, arguments = null
    where asked.thread_key = settle_calls_of.thread_key and asked.is_open is not false and asked.is_call and asked.asked_at <= due
        and (
            asked.run_no <> all (lineage)
            or exists (
                select
                from agui.projected_call as result
                where result.thread_key = asked.thread_key and result.call_id = asked.tool_call_id and result.result_at is not null
                    and result.run_no > asked.run_no and result.run_no = any (lineage)
            )
        );
    perform
    from agui.projected_interrupt as asked
    where asked.thread_key = settle_calls_of.thread_key and asked.is_open is not false and asked.is_call and asked.asked_at <= due;
    if found then
        update agui.projected_interrupt as asked
        set is_open = settled.is_open, arguments = settled.arguments
        from (
            select stored.ctid as row, call.call_id is not null as is_open, left(call.arguments, 1000) as arguments
            from agui.projected_interrupt as stored
            left join agui_internal.unanswered_calls_at(last) as call on call.call_id = stored.tool_call_id
            where stored.thread_key = settle_calls_of.thread_key and stored.is_open is not false and stored.is_call and stored.asked_at <= due
        ) as settled
        where asked.ctid = settled.row
            and (asked.is_open is distinct from settled.is_open or asked.arguments is distinct from settled.arguments);
    end if;
end
$$;

comment on function agui_internal.settle_calls_of is
    'Notes which calls of a thread, of runs that ended before a time, wait: those to which the conversation has no '
    'result after its last run that has ended.';
