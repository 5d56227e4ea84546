create or replace function agui_internal.asking_run(run agui.run)
returns agui.run
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    asking agui.run := run;
begin
    while asking.run_no is not null and agui_internal.keeps_interrupts(asking) loop
        select * into asking
        from agui.run as parent
        where parent.thread_key = asking.thread_key and parent.run_no = asking.parent_no;
    end loop;
    if asking.status = 'interrupted'
        or asking.status in ('failed', 'cut_off') and (
            select finish.interrupts is not null
            from agui_internal.last_finish(asking) as finish
        )
    then
        return asking;
    end if;
    return null;
end
$$;

comment on function agui_internal.asking_run is
    'The run of the lineage of a run whose interrupts a restore of that run has; null: it has none.';

create or replace function agui_internal.find_run(thread_id text, run_id text, scope text, needs_thread boolean default false)
returns agui.run
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
    key   uuid := agui_internal.visible_thread_key(scope, thread_id);
    found_run agui.run;
begin
    -- The same statement checks that the key belongs to this thread and not to another one.
    if run_id is null then
        select * into found_run
        from agui.run as run
        where run.thread_key = key
            and not exists (
                select from agui.thread as thread
                where thread.thread_key = key and (thread.scope <> find_run.scope or thread.thread_id <> find_run.thread_id)
            )
        order by run.run_no desc
        limit 1;
    else
        select * into found_run
        from agui.run as run
        where run.thread_key = key
            and run.run_id = find_run.run_id
            and not exists (
                select from agui.thread as thread
                where thread.thread_key = key and (thread.scope <> find_run.scope or thread.thread_id <> find_run.thread_id)
            );
    end if;
    if found_run.run_no is not null then
        return found_run;
    end if;

    key := agui_internal.checked_thread_key(thread_id, scope);
    perform from agui.run as run where run.thread_key = key limit 1;
    if not found then
        if not needs_thread and current_setting('agui.unknown_thread', true) = 'empty' then
            return null;
        end if;
        raise exception using
            errcode = 'UI001',
            message = format('thread "%s" is unknown%s', thread_id, case when scope <> '' then format(' in scope "%s"', scope) else '' end),
            hint = 'A thread exists once a run of it has begun. Is it in another scope? After "set agui.unknown_thread = empty" reads of it have no rows.';
    end if;
    raise exception using
        errcode = 'UI002',
        message = format('run "%s" of thread "%s" is unknown', run_id, thread_id),
        hint = format('select * from agui.branches(%L%s) shows the runs that branches end with.', thread_id,
            case when scope <> '' then format(', %L', scope) else '' end);
end
$$;

comment on function agui_internal.find_run is
    'The row of a run (null: the head, which is the run begun last). UI001: unknown thread; UI002: '
    'unknown run; UI012: the key belongs to another thread. needs_thread: whether to raise UI001 also where the session reads unknown '
    'threads as empty (agui.unknown_thread = empty); else it is then null.';

create or replace function agui_internal.has_open_call(head agui.run)
returns boolean
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
begin
    return exists (
        select
        from agui.projected_interrupt as asked
        where asked.thread_key = head.thread_key and asked.is_open and asked.is_call
    )
    and agui_internal.is_projected(head);
end
$$;

comment on function agui_internal.has_open_call is
    'Whether tool calls without a result wait after the head of a thread, which has ended '
    '(agui_internal.interrupt_state).';

create or replace function agui_internal.key_to_change(thread_id text, scope text)
returns uuid
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
    key constant uuid := agui_internal.own_thread_key(scope, thread_id);
begin
    perform
    from agui.thread as thread
    where thread.thread_key = key and (thread.scope <> key_to_change.scope or thread.thread_id <> key_to_change.thread_id);
    if found then
        perform agui_internal.checked_thread_key(thread_id, scope);  -- raises the error
    end if;
    return key;
end
$$;

comment on function agui_internal.key_to_change is
    'The key of a thread, which need not exist, that the calling role may change. 42501: the role '
    'does not have the scope; UI012: the key belongs to another thread.';

create or replace function agui_internal.checked_thread_key(thread_id text, scope text)
returns uuid
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
    key uuid := agui_internal.visible_thread_key(scope, thread_id);
begin
    perform
    from agui.thread as thread
    where thread.thread_key = key
        and (thread.scope <> checked_thread_key.scope or thread.thread_id <> checked_thread_key.thread_id);
    if found then
        raise exception using
            errcode = 'UI012',
            message = format('thread "%s" of scope "%s" has the same key as another thread', thread_id, scope),
            hint = 'The two ids have the same 128-bit hash. Use another thread id.';
    end if;
    return key;
end
$$;

comment on function agui_internal.checked_thread_key is
    'agui.thread_key of a thread, which need not exist. UI012: the key belongs to another thread.';

create or replace function agui_internal.listed_messages(messages json, wanted jsonb)
returns text[]
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select array_agg(distinct entry.id)
    from (
        select agui_internal.json_string_text(case when json_typeof(listed.message) = 'object' then (listed.message -> 'id')::text end) as id
        from json_array_elements(case when json_typeof(messages) = 'array' then messages end) as listed (message)
    ) as entry
    where wanted ? entry.id
$$;

comment on function agui_internal.listed_messages is
    'Which of the wanted ids, the keys of an object, the messages of a list in guarded JSON have, as '
    'the fold decodes them. Null: none.';

create or replace function agui_internal.lists_message(messages json, wanted text)
returns boolean
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
    select exists (
        select
        from json_array_elements(case when json_typeof(messages) = 'array' then messages end) as entry (message)
        where agui_internal.json_string_text(case when json_typeof(entry.message) = 'object' then (entry.message -> 'id')::text end) = wanted
    )
$$;

comment on function agui_internal.lists_message is
    'Whether a list of messages in guarded JSON has one with an id, as the fold decodes it.';

create or replace function agui_internal.may_wait(asked agui.projected_interrupt)
returns boolean
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return (asked.expires_at <= clock_timestamp()) is not true
        and (select state.status in ('waiting', 'answering') from agui_internal.interrupt_state(asked) as state);
end
$$;

comment on function agui_internal.may_wait is
    'Whether an interrupt waits for an answer, or will if the run in progress fails. A run that continues the run that '
    'asks can make it true again. Of calls agui_internal.settle_calls finds it.';

-- The only place that says what becomes of a question. Lists, facts and webhooks use it.
create or replace function agui_internal.interrupt_state(asked agui.projected_interrupt, out status text, out answer_no int)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
    head       agui.run;
    is_expired constant boolean := coalesce(asked.expires_at <= clock_timestamp(), false);
    reached    int[] := array[asked.run_no];  -- the runs after which it is open
begin
    select last.* into head
    from agui.run as last
    where last.thread_key = asked.thread_key
    order by last.run_no desc
    limit 1;

    -- A result answers a call, and no end does.
    if asked.is_call then
        if asked.is_open and head.status <> 'running' and agui_internal.is_projected(head) then
            status := 'waiting';
        elsif asked.is_open and agui_internal.is_behind(head, asked) then
            status := 'answering';
            answer_no := head.run_no;
        else
            select min(result.run_no) into answer_no
            from agui.projected_call as result
            where result.thread_key = asked.thread_key and result.call_id = asked.tool_call_id
                and result.run_no > asked.run_no and result.result_at is not null;
            status := case when answer_no is not null then 'answered' end;
        end if;
        return;
    end if;

    if head.run_no > asked.run_no then
        with recursive reach (run_no) as (
            select asked.run_no
            union all
            select child.run_no
            from reach
            cross join lateral (
                select run
                from agui.run as run
                where run.thread_key = asked.thread_key and run.parent_no = reach.run_no
                offset 0
            ) as found
            cross join lateral (select (found.run).run_no, agui_internal.keeps_interrupts(found.run) as keeps offset 0) as child
            where child.keeps
        )
        select array_agg(reach.run_no) into reached from reach;
    end if;

    if head.run_no = any (reached) and head.status = 'running' then
        status := 'answering';
        answer_no := head.run_no;
    elsif head.run_no = any (reached) then
        status := case when is_expired then 'expired' else 'waiting' end;
    else
        select min(child.run_no) into answer_no
        from unnest(reached) as open (run_no)
        cross join lateral (
            select run.run_no
            from agui.run as run
            where run.thread_key = asked.thread_key and run.parent_no = open.run_no
            offset 0
        ) as child
        where child.run_no <> all (reached);
        status := case when answer_no is null and is_expired then 'expired' else 'answered' end;
    end if;
end
$$;

comment on function agui_internal.interrupt_state is
    'What became of an interrupt with which a run ended, or of a tool call without a result. waiting: a restore of the head '
    'has it; of a call, as of the last call of the job. answering: the head, which continues the run that asks, is in '
    'progress, or has just ended. answered: a run that continues it came to its RUN_FINISHED, or the conversation went on in '
    'another branch (answer_no is null); a call: a later run brought its result. expired: expires_at has passed without an '
    'answer. null: a call that does not wait, and that no run answered. '
    'A run that fails or breaks off before its RUN_FINISHED answers no interrupt.';

create or replace function agui_internal.is_projected(run agui.run)
returns boolean
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
begin
    return exists (
        select
        from agui.projected_run as projected
        where projected.thread_key = run.thread_key and projected.run_no = run.run_no and projected.changed_in is not distinct from run.changed_in
    );
end
$$;

comment on function agui_internal.is_projected is
    'Whether agui.project() has read a run as it is now.';

create or replace function agui_internal.is_behind(run agui.run, asked agui.projected_interrupt)
returns boolean
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
begin
    return exists (
        select
        from agui_internal.ancestors(
            run,
            (
                select asking.first_seq
                from agui.run as asking
                where asking.thread_key = asked.thread_key and asking.run_no = asked.run_no
            )
        ) as before
        where before.run_no = asked.run_no
    );
end
$$;

comment on function agui_internal.is_behind is
    'Whether a run is the one that asks, or continues it, at once or later.';

create or replace function agui_internal.keeps_interrupts(run agui.run)
returns boolean
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return case
        when run.status = 'running' then true
        when run.status in ('failed', 'cut_off') then (select finish.event is null from agui_internal.last_finish(run) as finish)
        else false
    end;
end
$$;

comment on function agui_internal.keeps_interrupts is
    'Whether what is open before a run is still open at its end, as in the folds: it is in progress, or it '
    'failed or broke off without a RUN_FINISHED.';

create or replace function agui_internal.origin_span(
    leaf       agui.run,
    message_id text,
    out from_no   int,
    out to_no     int,
    out after_seq bigint,
    out holder_no int
)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    with stored as materialized (
        select snapshot.run_no, snapshot.through_seq, snapshot.message_nos
        from agui_internal.ancestors(leaf) as ancestor
        join agui.snapshot as snapshot
            on snapshot.thread_key = ancestor.thread_key and snapshot.run_no = ancestor.run_no and snapshot.rules = agui_internal.rules()
    ),
    version as materialized (
        select message.message_no
        from (
            select unnest(range_agg(part)) as message_nos
            from stored
            cross join unnest(stored.message_nos) as part
        ) as held
        -- The offset makes this one look-up for each range: other branches have messages, too.
        cross join lateral (
            select version.message_no
            from agui.message_version as version
            where version.thread_key = leaf.thread_key
                and version.message_no >= lower(held.message_nos) and version.message_no < upper(held.message_nos)
                and version.message_id = origin_span.message_id
            offset 0
        ) as message
    ),
    kept as (
        select
            stored.run_no,
            stored.through_seq,
            exists (
                select
                from unnest(stored.message_nos) as part (message_nos)
                join version on part.message_nos @> version.message_no
            ) as is_holder
        from stored
    ),
    holder as (
        select min(kept.run_no) as run_no from kept where kept.is_holder
    )
    select coalesce(max(kept.run_no), 1), coalesce(holder.run_no, leaf.run_no), coalesce(max(kept.through_seq), 0), holder.run_no
    into from_no, to_no, after_seq, holder_no
    from holder
    left join kept
        on holder.run_no is null or kept.run_no < holder.run_no
    group by holder.run_no;
end
$$;

comment on function agui_internal.origin_span is
    'The part of the lineage of a run in which a message arrived: the runs from_no to to_no, after '
    'after_seq. It ends with the first run whose snapshot holds the message (holder_no; null: there '
    'is none), and begins with the last snapshot before.';

create or replace function agui_internal.run_at(leaf agui.run, at_seq bigint)
returns agui.run
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    run agui.run := leaf;
begin
    if leaf.first_seq > at_seq then
        select * into run
        from agui_internal.ancestors(leaf) as ancestor
        where ancestor.first_seq <= at_seq
        order by ancestor.run_no desc
        limit 1;
    end if;
    return run;
end
$$;

comment on function agui_internal.run_at is
    'The run of a lineage in progress at a seq (null: the run itself); null before the first one.';

create or replace function agui_internal.ancestors(leaf agui.run, after_seq bigint default 0)
returns setof agui.run
language plpgsql
stable
parallel safe
rows 20
set search_path = pg_catalog, pg_temp
as $$
begin
    -- In PL/pgSQL the plan is cached.
    return query
    with recursive ancestor as (
        select leaf.*
        where leaf.run_no is not null
        union all
        select parent.*
        from ancestor
        -- The offset makes this one look-up in the index for each. A join may read all runs of the
        -- thread each time.
        cross join lateral (
            select run.*
            from agui.run as run
            where run.thread_key = ancestor.thread_key and run.run_no = ancestor.parent_no and run.run_no < ancestor.run_no
            offset 0
        ) as parent
        -- A parent has ended before its child begins.
        where ancestor.first_seq - 1 > after_seq
    )
    select * from ancestor;
end
$$;

comment on function agui_internal.ancestors is
    'The rows of the runs from a run back to the one that has the event after after_seq, or to the root: '
    'run_no decreases from one to the next. None if the run is null.';
