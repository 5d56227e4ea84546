create or replace function agui.answered(
    thread_id     text,
    run_id        text default null,
    asked_by      text default null,
    interrupt_ids text[] default null,
    question      json default null,
    scope         text default ''
)
returns table (asking_run_id text, answered_by text, answered_at timestamptz)
language plpgsql
stable
security definer
rows 1
set search_path = pg_catalog, pg_temp
as $$
declare
    has_ids constant boolean := coalesce(cardinality(interrupt_ids), 0) > 0;
    names_question constant boolean := has_ids or question is not null; -- the answer says what it is to
    run   agui.run;
    later agui.run;  -- the first one behind run that leaves nothing open
    named agui.run;  -- the run that asks; the last one that asked_by means, as long as no run asks what the answer names
    reply agui.run;  -- what later was then
begin
    for run in
        select ancestor.*
        from agui_internal.ancestors(agui_internal.find_run(thread_id, answered.run_id, scope)) as ancestor
        order by ancestor.run_no desc
    loop
        if names_question and run.status in ('interrupted', 'failed', 'cut_off') and exists (
            select
            from agui_internal.last_finish(run) as finish
            cross join lateral json_array_elements(finish.interrupts) as interrupt
            where case
                when has_ids then agui_internal.json_string_text((interrupt -> 'id')::text) = any (interrupt_ids)
                else agui_internal.json_equal(agui_internal.json_unguard((interrupt -> 'source' -> 'value')::text), question::text)
            end
        ) then
            named := run;
            reply := later;
            exit;
        end if;
        -- A page names the run with whose id it asked first, also when the run of its answer asks.
        if named.run_id is null and (
            run.run_id = asked_by or run.status = 'interrupted' and (
                starts_with(run.run_id, asked_by || '-answer-') or asked_by is null and not has_ids
            )
        ) then
            named := run;
            reply := later;
            exit when asked_by is null and not names_question;
        end if;
        if run.status = 'running' or not agui_internal.keeps_interrupts(run) then
            later := run;
        end if;
    end loop;
    if found then
        return query select named.run_id, reply.run_id, reply.started_at;
    end if;
end
$$;

comment on function agui.answered is
    'One row: which run of the lineage of a run (null: of the head) asks what an answer is to, and whether that is answered: '
    'answered_by is the run that did, and answered_at when it began (null: it is open). interrupt_ids: those that the '
    'answer names; the last run counts that asks one of them. question: the value of the CUSTOM event that asked, which clients '
    'repeat as interruptEvent; without ids the last run counts that asks this. If there is none, it is the run asked_by, or the last of '
    'the runs with answers to it (ids that begin with asked_by and -answer-) that asks. Without ids and asked_by, it is the last run that '
    'asks. asking_run_id is null if the lineage has no such run. As in restore, a run that fails or '
    'breaks off answers nothing. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key.';

-- It asks for the head, not for a run by its id.
-- never: UI002
create or replace function agui.branches(thread_id text, scope text default '')
returns setof agui.branch
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    head   agui.run := agui_internal.find_run(thread_id, null, scope);
    depths int[] := array_fill(0, array[coalesce(head.run_no, 0)]);
    forks  int[] := array_fill(null::int, array[coalesce(head.run_no, 0)]);
    item   record;
    branch agui.branch;
begin
    -- Parents come before their children, so a single pass in the order of run_no has depth and
    -- last fork of every parent.
    for item in
        select
            run.*,
            count(*) over (partition by run.parent_no) as children_of_parent,
            -- Not "exists", for which the planner may hash the whole table.
            (
                select child.run_no
                from agui.run as child
                where child.thread_key = head.thread_key and child.parent_no = run.run_no and child.run_no <= head.run_no
                limit 1
            ) as child_no
        from agui.run as run
        where run.thread_key = head.thread_key and run.run_no <= head.run_no
        order by run.run_no
    loop
        depths[item.run_no] := coalesce(depths[item.parent_no], 0) + 1;
        forks[item.run_no] := case when item.children_of_parent > 1 then item.parent_no else forks[item.parent_no] end;
        if item.child_no is null then
            branch.run_id := item.run_id;
            branch.runs := depths[item.run_no];
            select run.run_id into branch.forked_from
            from agui.run as run
            where run.thread_key = head.thread_key and run.run_no = forks[item.run_no];
            branch.status := item.status;
            branch.last_seq := item.last_seq;
            branch.is_head := item.run_no = head.run_no;
            return next branch;
        end if;
    end loop;
end
$$;

comment on function agui.branches is
    'Returns the branches of a thread, one row for each leaf of its tree, in the order in which '
    'the leaves began. '
    'Errors: UI001 unknown thread, UI012 another thread has the same key.';

create or replace function agui.children(thread_id text, run_id text default null, scope text default '')
returns setof agui.run_info
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
-- A plan of a time when the thread had one run would read all its runs.
set enable_seqscan = off
set jit = off
as $$
declare
    parent agui.run;
    key    uuid;
    depth  int;
begin
    if run_id is not null then
        parent := agui_internal.find_run(thread_id, run_id, scope);
    end if;
    key := coalesce(parent.thread_key, (agui_internal.find_run(thread_id, null, scope)).thread_key);
    depth := 1 + (select count(*) from agui_internal.ancestors(parent));
    return query
    select
        depth, child.run_id, parent.run_id, child.status, child.first_seq, child.last_seq, child.started_at, child.ended_at, child.run_no,
        (why.ended).error_code, (why.ended).error_message, (why.ended).stop_reason, (why.ended).cut_off_reason
    from (
        select of_parent as run
        from agui.run as of_parent
        where of_parent.thread_key = key and of_parent.parent_no = parent.run_no
        union all
        select root
        from agui.run as root
        where parent.run_no is null and root.thread_key = key and root.parent_no is null
    ) as listed
    cross join lateral (select (listed.run).*) as child
    cross join lateral (
        select case
            when child.status not in ('running', 'finished', 'interrupted') then agui_internal.why_ended(listed.run, 1000)
        end as ended
        offset 0
    ) as why
    order by child.run_no;
end
$$;

comment on function agui.children is
    'Returns the runs that continue from a run, in the order in which they began. Without a run: '
    'the roots of the thread. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key.';

-- It asks for the head, not for a run by its id.
-- never: UI002
create or replace function agui.head(thread_id text, scope text default '')
returns text
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select (agui_internal.find_run(thread_id, null, scope)).run_id
$$;

comment on function agui.head is
    'Returns the id of the head of a thread: the run that began last. A new run that names no '
    'parent continues from it. '
    'Errors: UI001 unknown thread, UI012 another thread has the same key.';

create or replace function agui.merge_base(thread_id text, run_a text, run_b text, scope text default '')
returns text
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    a agui.run := agui_internal.find_run(thread_id, run_a, scope);
    b agui.run := agui_internal.find_run(thread_id, run_b, scope);
    swap agui.run;
begin
    -- A parent has a smaller number than its children. So the younger of the two runs cannot be an
    -- ancestor of the other, and it is replaced by its parent.
    while a.run_no <> b.run_no loop
        if a.run_no < b.run_no then
            swap := a;
            a := b;
            b := swap;
        end if;
        if a.parent_no is null then
            return null;
        end if;
        select * into a
        from agui.run as run
        where run.thread_key = a.thread_key and run.run_no = a.parent_no;
    end loop;
    return a.run_id;
end
$$;

comment on function agui.merge_base is
    'Returns the last run that the lineages of two runs share, or null if they have different '
    'roots. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key.';

create or replace function agui.message_origin(thread_id text, message_id text, run_id text default null, scope text default '')
returns setof agui.run_info
language plpgsql
stable
security definer
rows 1
set search_path = pg_catalog, pg_temp
as $$
declare
    leaf      constant agui.run := agui_internal.find_run(thread_id, run_id, scope);
    -- As the fold decodes it.
    wanted    constant text := agui_internal.json_string_text(agui_internal.json_guard(to_json(message_id)::text));
    span      record;
    ancestor  agui.run;
    origin_no int;
begin
    select * into span from agui_internal.origin_span(leaf, wanted);
    for ancestor in
        select run.*
        from agui_internal.ancestors(leaf) as run
        where run.run_no between span.from_no and span.to_no
        order by run.run_no
    loop
        if agui_internal.brings_message(ancestor, message_id, wanted, span.after_seq) then
            origin_no := ancestor.run_no;
            exit;
        end if;
    end loop;
    return query
    select known.*
    from agui.lineage(thread_id, leaf.run_id, scope) as known
    where known.run_no = coalesce(origin_no, span.holder_no);
end
$$;

comment on function agui.message_origin is
    'Returns the run on the lineage of a run (null: of the head) that first brought the message '
    'with an id, in its events or in its input; no row if there is none. Clients send all messages '
    'in every input, so later runs usually bring it, too. If a message went and came again, the '
    'run is one of those that brought it. To edit or regenerate the message, begin a run whose '
    'parent is the parent of this one. The snapshots of the lineage say between which of them the '
    'message arrived, and only those runs are searched. Folds only a run that has a tool call with '
    'the id of the message and another parent. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key, UI022 '
    'a run is in quarantine, UI023 the fold exceeds a limit.';

create or replace function agui.branch_point(
    thread_id   text,
    messages    json,
    run_id      text default null,
    history     text default 'fill',
    is_given    boolean default false,
    waited_from text default null,
    scope       text default ''
)
returns agui.branch_point_row
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    run     agui.run := agui_internal.find_run(thread_id, run_id, scope);
    fold    agui_internal.fold := agui_internal.fold_at(run, null, null);
    stored  agui_internal.turn[];
    have    agui_internal.turn[];
    sent    agui_internal.turn[];
    same    agui_internal.turn[];  -- what the client sent, under the ids of the store
    arrived text[];
    point   text := 'head';
    edited  text;
    kept    int := 1;
    next    int := 1;
    has_aliases boolean := false;
    is_filled   boolean;
begin
    if history is null or history not in ('full', 'fill', 'new') then
        raise exception using
            errcode = 'UI008',
            message = format('branch point of thread "%s": history is %s', thread_id, coalesce('"' || history || '"', 'null')),
            hint = 'Use "full", "fill" or "new".';
    end if;
    perform agui_internal.inspect_messages(messages, thread_id);
    sent := agui_internal.turns_in(agui_internal.sent_turns(messages));
    stored := agui_internal.turns_of(fold, array(select (unnest(sent)).id));
    have := agui_internal.turns_in(stored);
    if waited_from is not null and not is_given then
        arrived := agui_internal.ids_of_answers(stored);
        if waited_from <> '' then
            fold := agui_internal.fold_at(agui_internal.find_run(thread_id, waited_from, scope), null, null);
            arrived := array(select unnest(arrived) except select unnest(agui_internal.named_ids(agui_internal.turns_of(fold, '{}'))));
        end if;
    end if;

    case
        when is_given then
            null;
        when history = 'new' then
            -- The client has not removed what it leaves out: only another content of a message is an edit.
            edited := (
                select turn.id
                from unnest(sent) with ordinality as turn
                where turn.role = 'user'
                    and turn.id = any (agui_internal.named_ids(stored))
                    and not exists (select from unnest(stored) as known where known.role = 'activity' and known.id = turn.id)
                    and not exists (select from unnest(stored) as known where known.key = turn.key)
                order by turn.ordinality
                limit 1
            );
        when not agui_internal.named_ids(have) && agui_internal.named_ids(sent) then
            if history = 'full' and cardinality(sent) > 0 and cardinality(have) > 0 then
                point := 'start';
            end if;
        else
            same := agui_internal.under_stored_ids(thread_id, run.run_id, stored, sent, scope);
            has_aliases := array(select (unnest(same)).id) <> array(select (unnest(sent)).id);
            -- What agents said while the request waited is none that its client has removed.
            while kept <= cardinality(have) loop
                if have[kept].key = same[next].key then
                    next := next + 1;
                else
                    exit when arrived is null or have[kept].id <> all (arrived);
                end if;
                kept := kept + 1;
            end loop;
            if kept > cardinality(have) then
                null;
            elsif have[kept].id is distinct from same[next].id and agui_internal.named_ids(same[next:]) && agui_internal.named_ids(stored) then
                point := 'elsewhere';
            else
                -- An id that several messages share names the first of them, or the activity.
                edited := coalesce(
                    (
                        select turn.id
                        from unnest(have[kept:]) with ordinality as turn
                        where not exists (select from unnest(have[:kept - 1]) as other where other.id = turn.id)
                            and not exists (select from unnest(stored) as other where other.role = 'activity' and other.id = turn.id)
                        order by turn.ordinality
                        limit 1
                    ),
                    have[kept].id
                );
            end if;
    end case;

    if edited is not null then
        select case when origin.parent_run_id is null then 'start' else 'before' end, origin.parent_run_id
        into point, edited
        from agui.message_origin(thread_id, edited, run.run_id, scope) as origin;
        point := coalesce(point, 'head');
    end if;
    if point = 'start' then
        return row(null, point, false, false, 0)::agui.branch_point_row;
    elsif point = 'before' then
        run := agui_internal.find_run(thread_id, edited, scope);
        arrived := null;
    end if;
    if point = 'before' or arrived is not null then
        fold := agui_internal.fold_at(run, null, null);
        stored := agui_internal.turns_of(fold, '{}');
        have := agui_internal.turns_in(stored);
    end if;
    is_filled := history = 'new'
        or history = 'fill' and not agui_internal.named_ids(have) && agui_internal.named_ids(sent)
        or not has_aliases and array(select unnest(arrived) intersect select unnest(agui_internal.named_ids(have))
            except select unnest(agui_internal.named_ids(sent))) <> '{}';
    return row(
        run.run_id, point, is_filled,
        exists (select from unnest(stored) as turn where turn.role <> 'activity') and (has_aliases or history = 'fill' and is_filled),
        (select coalesce(sum(octet_length(body)), 0) from unnest(fold.bodies) as body) + octet_length(fold.state)
    )::agui.branch_point_row;
end
$$;

comment on function agui.branch_point is
    'Decides where a run continues whose client sends messages (the list of a RunAgentInput) and names no parent. run_id is the run '
    'that it continues otherwise (null: the head). Call it behind agui.claim_run, with the parent of the claim, so that no '
    'other run begins meanwhile. An edited message, or an answer that is to be generated again, begins a branch before the run that '
    'brought it. Messages are compared by id and role, those of users also by content; instructions, reasoning and activities do '
    'not count. history: clients send all messages (full; one that sends none of the stored ones begins a new conversation), all of '
    'them or only new ones (fill), or only new ones (new). is_given: the client named run_id as the parent, or answers what it asks. '
    'waited_from: the request waited for its turn, and the thread was at the end of this run before ('''': it was empty). '
    'Errors: UI001 unknown thread, UI002 unknown run, UI008 invalid arguments, UI012 another thread has the same key, UI022 '
    'a run is in quarantine, UI023 the fold exceeds a limit.';

create or replace function agui_internal.under_stored_ids(
    thread_id text, run_id text, stored agui_internal.turn[], sent agui_internal.turn[], scope text
)
returns agui_internal.turn[]
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
    have agui_internal.turn[] := agui_internal.turns_in(stored);
    same agui_internal.turn[] := '{}';
    i    int := 1;
    j    int := 1;
    brought_by text;
begin
    while i <= cardinality(sent) and j <= cardinality(have) loop
        if sent[i].key = have[j].key then
            same := array_append(same, have[j]);
            i := i + 1;
            j := j + 1;
            continue;
        end if;
        exit when sent[i].id = any (agui_internal.named_ids(stored));
        brought_by := agui_internal.answered_by(thread_id, run_id, sent[i], scope);
        exit when brought_by is null or agui_internal.answered_by(thread_id, run_id, have[j], scope) is distinct from brought_by;
        while agui_internal.answered_by(thread_id, run_id, sent[i], scope) = brought_by loop
            i := i + 1;
        end loop;
        while agui_internal.answered_by(thread_id, run_id, have[j], scope) = brought_by loop
            same := array_append(same, have[j]);
            j := j + 1;
        end loop;
    end loop;
    return same || sent[i:];
end
$$;

comment on function agui_internal.under_stored_ids is
    'The turns that a client sent, with the stored ones in place of those that it has under other ids: some agents stream a message '
    'with one id, and list it with another when the run ends, which a client that stopped did not see. What it has of the '
    'answer of a run stands for all of it.';

create or replace function agui_internal.answered_by(thread_id text, run_id text, turn agui_internal.turn, scope text)
returns text
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
    select origin.run_id
    from agui.message_origin(thread_id, turn.id, run_id, scope) as origin
    where turn.role <> 'user' and turn.id <> ''
$$;

comment on function agui_internal.answered_by is
    'The run that brought a message of an agent; null: none did, or it is one of a user.';

create or replace function agui.agent_messages(thread_id text, messages json, run_id text default null, scope text default '')
returns json
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    fold   agui_internal.fold := agui_internal.fold_at(agui_internal.find_run(thread_id, run_id, scope), null, null);
    stored agui_internal.turn[] := agui_internal.turns_of(fold, '{}');
    sent   agui_internal.turn[];
    has_instructions boolean;
begin
    perform agui_internal.inspect_messages(messages, thread_id);
    sent := agui_internal.sent_turns(messages);
    has_instructions := exists (select from unnest(sent) as turn where turn.role in ('system', 'developer'));
    return concat(
        '[',
        concat_ws(
            ',',
            (
                select string_agg(message.body, ',' order by message.position)
                from unnest(fold.bodies, fold.roles) with ordinality as message (body, role, position)
                where message.role <> 'activity' and not (has_instructions and message.role in ('system', 'developer'))
            ),
            (
                select string_agg(message.body::text, ',' order by message.position)
                from rows from (unnest(sent), json_array_elements(messages)) with ordinality as message (id, role, is_turn, is_named, key, body, position)
                where message.role in ('system', 'developer') or message.id <> all (agui_internal.named_ids(stored))
            )
        ),
        ']'
    );
end
$$;

comment on function agui.agent_messages is
    'Returns the messages that an agent needs whose client sent only some (agui.branch_point, is_filled): the stored ones at the end of '
    'a run (null: the head), without activities, which only UIs get, and then those that are new. Instructions of the client replace the '
    'stored ones. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI008 invalid arguments, UI012 another thread has the same key, UI022 '
    'a run is in quarantine, UI023 the fold exceeds a limit.';

create or replace function agui.lineage(thread_id text, run_id text default null, scope text default '')
returns setof agui.run_info
language plpgsql
stable
security definer
rows 20
set search_path = pg_catalog, pg_temp
as $$
declare
    leaf agui.run := agui_internal.find_run(thread_id, run_id, scope);
begin
    return query
    select
        (row_number() over root_first)::int,
        ancestor.run_id,
        lag(ancestor.run_id) over root_first,
        ancestor.status,
        ancestor.first_seq,
        ancestor.last_seq,
        ancestor.started_at,
        ancestor.ended_at,
        ancestor.run_no,
        (why.ended).error_code,
        (why.ended).error_message,
        (why.ended).stop_reason,
        (why.ended).cut_off_reason
    from agui_internal.ancestors(leaf) as ancestor
    cross join lateral (
        select case
            when ancestor.status not in ('running', 'finished', 'interrupted') then agui_internal.why_ended(ancestor, 1000)
        end as ended
        offset 0
    ) as why
    window root_first as (order by ancestor.run_no)
    order by ancestor.run_no;
end
$$;

comment on function agui.lineage is
    'Returns the runs from the root to a run (null: to the head), root first. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key.';

-- It asks for the head, not for a run by its id.
-- never: UI002
create or replace function agui.runs(thread_id text, scope text default '')
returns setof agui.run_info
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    head   agui.run := agui_internal.find_run(thread_id, null, scope);
    depths int[] := array_fill(0, array[coalesce(head.run_no, 0)]);
    ids    text[] := array_fill(null::text, array[coalesce(head.run_no, 0)]);
    item   record;
    info   agui.run_info;
    why    agui_internal.run_end;
begin
    -- Parents come before their children, so a single pass in the order of run_no has the depth and
    -- the id of every parent.
    for item in
        select run, run.*
        from agui.run as run
        where run.thread_key = head.thread_key and run.run_no <= head.run_no
        order by run.run_no
    loop
        depths[item.run_no] := coalesce(depths[item.parent_no], 0) + 1;
        ids[item.run_no] := item.run_id;
        why := case when item.status not in ('running', 'finished', 'interrupted') then agui_internal.why_ended(item.run, 1000) end;
        info := row(
            depths[item.run_no], item.run_id, ids[item.parent_no], item.status,
            item.first_seq, item.last_seq, item.started_at, item.ended_at, item.run_no,
            why.error_code, why.error_message, why.stop_reason, why.cut_off_reason
        );
        return next info;
    end loop;
end
$$;

comment on function agui.runs is
    'Returns all runs of a thread, its tree, in the order in which they began. '
    'Errors: UI001 unknown thread, UI012 another thread has the same key.';
