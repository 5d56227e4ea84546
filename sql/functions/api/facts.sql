-- route: medians
create or replace function agui.agent_report(since timestamptz default null, until timestamptz default null, scope text default null)
returns table (
    agent text, runs bigint, running bigint, finished bigint, interrupted bigint, cancelled bigint, failed bigint, cut_off bigint,
    median_duration interval, p95_duration interval, median_first_token interval, p95_first_token interval
)
language plpgsql
stable
security definer
rows 20
set search_path = pg_catalog, pg_temp
-- As in agui.waiting.
set plan_cache_mode = force_custom_plan
set jit = off
as $$
#variable_conflict use_column
declare
    own record;
begin
    select * into own from agui_internal.own_keys_in(agent_report.scope);
    return query
    select
        run.agent,
        count(*),
        count(*) filter (where run.status = 'running'),
        count(*) filter (where run.status = 'finished'),
        count(*) filter (where run.status = 'interrupted'),
        count(*) filter (where run.status = 'cancelled'),
        count(*) filter (where run.status = 'failed'),
        count(*) filter (where run.status = 'cut_off'),
        percentile_disc(0.5) within group (order by run.duration),
        percentile_disc(0.95) within group (order by run.duration),
        percentile_disc(0.5) within group (order by run.first_token_after),
        percentile_disc(0.95) within group (order by run.first_token_after)
    from agui.run_fact as run
    where run.thread_key >= own.low and run.thread_key <= own.high
        and (agent_report.since is null or run.started_at >= agent_report.since)
        and (agent_report.until is null or run.started_at < agent_report.until)
        and (agent_report.scope is null or run.scope = agent_report.scope)
    group by run.agent
    order by 2 desc, run.agent collate "C";
end
$$;

comment on function agui.agent_report is
    'Returns the agents (null: not set) whose runs began from a time on (null: always) and before '
    'another (null: until now), those with most runs first: the runs by status, and the median and the '
    '95th percentile of how long they took and of how long the first piece of text took. scope: only '
    'of a scope (null: all that the role sees). As of the last call of agui.project().';

-- route: merged
create or replace function agui.day_report(since timestamptz default null, until timestamptz default null, scope text default null)
returns table (day date, threads bigint, runs bigint, failed bigint, events numeric, bytes numeric)
language plpgsql
stable
security definer
rows 100
set search_path = pg_catalog, pg_temp
-- As in agui.waiting.
set plan_cache_mode = force_custom_plan
set jit = off
as $$
#variable_conflict use_column
declare
    own record;
begin
    select * into own from agui_internal.own_keys_in(day_report.scope);
    return query
    select
        run.started_at::date,
        count(distinct run.thread_key),
        count(*),
        count(*) filter (where run.status in ('failed', 'cut_off')),
        coalesce(sum(run.events), 0),
        coalesce(sum(run.bytes), 0)
    from agui.run_fact as run
    where run.thread_key >= own.low and run.thread_key <= own.high
        and (day_report.since is null or run.started_at >= day_report.since)
        and (day_report.until is null or run.started_at < day_report.until)
        and (day_report.scope is null or run.scope = day_report.scope)
    group by 1
    order by 1;
end
$$;

comment on function agui.day_report is
    'Returns the days, in the time zone of the session, on which runs began from a time on (null: '
    'always) and before another (null: until now): in how many threads, how many runs, how many of '
    'them failed or were cut off, their events, and the bytes of the text of these. scope: only of a '
    'scope (null: all that the role sees). As of the last call of agui.project().';

create or replace view agui.run_fact with (security_invoker = true) as
select
    thread.scope,
    thread.thread_id,
    run.run_id,
    parent.run_id as parent_run_id,
    activity.agent,
    run.status,
    projected.error_code,
    projected.error_message,
    run.stop_reason,
    run.cut_off_reason,
    run.started_at,
    run.ended_at,
    run.ended_at - run.started_at as duration,
    projected.first_token_at - run.started_at as first_token_after,
    projected.events,
    projected.bytes,
    run.thread_key,
    run.run_no
from agui.run as run
join agui.thread as thread on thread.thread_key = run.thread_key
left join agui.thread_activity as activity on activity.thread_key = run.thread_key
left join agui.run as parent on parent.thread_key = run.thread_key and parent.run_no = run.parent_no
left join agui.projected_run as projected on projected.thread_key = run.thread_key and projected.run_no = run.run_no;

comment on view agui.run_fact is
    'All runs, with what agui.project() found in their logs. That is null while a run is in progress, '
    'and until the next call of the job.';
comment on column agui.run_fact.scope is 'Scope of the thread.';
comment on column agui.run_fact.thread_id is 'The thread.';
comment on column agui.run_fact.run_id is 'The run.';
comment on column agui.run_fact.parent_run_id is 'The run that it continues from; null: a root.';
comment on column agui.run_fact.agent is 'The agent that the thread belongs to (agui.set_thread); null: not set.';
comment on column agui.run_fact.status is 'running, finished, interrupted, cancelled, failed or cut_off, as in agui.run.';
comment on column agui.run_fact.error_code is 'code of RUN_ERROR; null: none.';
comment on column agui.run_fact.error_message is 'message of RUN_ERROR, its first 1000 characters; null: none.';
comment on column agui.run_fact.stop_reason is 'Reason given with a stop request; null: none.';
comment on column agui.run_fact.cut_off_reason is 'Why it was ended on behalf of its writer; null: it was not.';
comment on column agui.run_fact.started_at is 'When its first event was recorded.';
comment on column agui.run_fact.ended_at is 'When its last event was recorded; null while it is running.';
comment on column agui.run_fact.duration is 'From its first event to its last; null while it is running.';
comment on column agui.run_fact.first_token_after is
    'How long after its beginning the first piece of a text message was recorded; null: there is none.';
comment on column agui.run_fact.events is 'Number of its events.';
comment on column agui.run_fact.bytes is 'Size of the text of its events in bytes.';
comment on column agui.run_fact.thread_key is 'Key of the thread.';
comment on column agui.run_fact.run_no is 'Number of the run in its thread.';

create or replace function agui.last_errors(
    thread_id text,
    run_id    text default null,
    at_seq    bigint default null,
    max_rows  int default 100,
    lineage   boolean default true,
    scope     text default ''
)
returns agui.error_page
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    most_rows constant int := 1000;
    most_runs constant int := 200;  -- whose logs are read for a page
    until     constant bigint := coalesce(at_seq, 9223372036854775807);
    of_thread constant boolean := run_id is null and lineage is not false;
    leaf      agui.run := agui_internal.find_run(thread_id, run_id, scope);
    suspect   record;
    run       agui.run;
    why       agui_internal.run_end;
    looked    int := 0;
    is_full   boolean := false;
    errors    agui.error_row[] := '{}';
    page      agui.error_page;
begin
    if max_rows is null or max_rows not between 1 and most_rows then
        raise exception using
            errcode = 'UI011',
            message = format('errors of thread "%s": max_rows must be between 1 and %s, not %s', thread_id, most_rows, coalesce(max_rows::text, 'null')),
            hint = 'To read the page before this one, pass its next_seq as at_seq.';
    end if;

    for suspect in
        select
            listed.run,
            least(coalesce((listed.run).last_seq, until), until) as last_seq,
            -- What the job has found in the log says whether to read it, unless the run has changed since.
            fact.run_no is null or (listed.run).status = 'running' or fact.changed_in is distinct from (listed.run).changed_in
                or failed.run_no is not null as needs_log
        from (
            select every_run as run from agui.run as every_run where of_thread and every_run.thread_key = leaf.thread_key
            union all
            select ancestor
            from agui_internal.ancestors(leaf, case when lineage is false then leaf.first_seq else 0 end) as ancestor
            where not of_thread
        ) as listed
        -- The limits make these one look-up for each run.
        left join lateral (
            select known.run_no, known.changed_in
            from agui.projected_run as known
            where known.thread_key = leaf.thread_key and known.run_no = (listed.run).run_no
            limit 1
        ) as fact on true
        left join lateral (
            select call.run_no
            from agui.projected_call as call
            where call.thread_key = leaf.thread_key and call.run_no = (listed.run).run_no and call.error is not null
            limit 1
        ) as failed on true
        where (listed.run).first_seq <= until
        order by last_seq desc, (listed.run).run_no desc
    loop
        is_full := cardinality(errors) >= max_rows
            and suspect.last_seq < (select error.seq from unnest(errors) as error order by error.seq desc limit 1 offset max_rows - 1);
        exit when is_full;
        run := suspect.run;
        if run.status in ('failed', 'cancelled', 'cut_off') and coalesce(run.end_seq, run.last_seq) <= until then
            why := agui_internal.why_ended(run, 1000);
            errors := errors || row (
                coalesce(run.end_seq, run.last_seq), run.run_id, run.status,
                why.error_code, why.error_message, why.stop_reason, why.cut_off_reason,
                null, null, coalesce((agui_internal.end_of_run(run)).at, run.ended_at)
            )::agui.error_row;
        end if;
        continue when not suspect.needs_log;
        if looked = most_runs then
            page.next_seq := suspect.last_seq;
            exit;
        end if;
        looked := looked + 1;
        errors := errors || array(
            select row (failure.seq, run.run_id, 'tool', null, failure.error, null, null, failure.call_id, failure.tool, failure.at)::agui.error_row
            from agui_internal.failures_of_run(run, until) as failure
        );
    end loop;

    page.errors := array(
        select shown.error
        from (
            select error
            from unnest(errors) as error
            where error.seq > coalesce(page.next_seq, 0)
            order by error.seq desc
            fetch first (max_rows) rows with ties  -- those of one input have one seq
        ) as shown
        order by (shown.error).seq, (shown.error).tool_call_id
    );
    if is_full or cardinality(errors) > cardinality(page.errors) then
        page.next_seq := coalesce((page.errors[1]).seq - 1, page.next_seq);
    end if;
    return page;
end
$$;

comment on function agui.last_errors is
    'Returns the last errors of a thread up to event at_seq (null: its end), all branches, or of the '
    'lineage of run_id, or (lineage => false) of that run alone, or else the head: runs that failed, '
    'were cut off or were cancelled, and tool calls whose result is an error. A page has up to '
    'max_rows (default 100, at most 1,000), or a few more if they have one seq, in the order of seq; to '
    'read the page before it, pass its next_seq as at_seq. Of a run that agui.project() has read, its facts say whether a tool '
    'call failed, and its log is read only if one did; the logs of the others are read, of up to '
    '200 runs for a page. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI011 max_rows is out of range, UI012 '
    'another thread has the same key.';

-- role: maintainer; route: each node
create or replace function agui.map_usage(path text[], names jsonb default '{}', custom text default null)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    unknown text;
begin
    perform agui_internal.refuse_unless_operator('say where usage is reported');
    if path is null or array_position(path, null) is not null then
        raise exception using
            errcode = '22023',
            message = 'map_usage: path names the members that lead from the event to the report',
            hint = 'For example array[''metadata'', ''usage''], or array[]::text[] for the event itself. agui.unmap_usage() removes all mappings.';
    end if;
    if custom = '' then
        raise exception using errcode = '22023', message = 'map_usage: custom must be the name of a CUSTOM event, or null for the ends of runs';
    end if;
    if jsonb_typeof(names) is distinct from 'object' then
        raise exception using errcode = '22023', message = 'map_usage: names must be an object';
    end if;
    select name.key into unknown
    from jsonb_each(names) as name
    where name.key <> all (agui_internal.usage_members()) or jsonb_typeof(name.value) <> 'string'
    limit 1;
    if found then
        raise exception using
            errcode = '22023',
            message = format('map_usage: names maps "%s", which is no member of usage, or not to a text', unknown),
            hint = format('The members are %s.', array_to_string(agui_internal.usage_members(), ', '));
    end if;
    -- A step of the job in progress ends first, also the first one. The next one begins with all runs.
    lock table agui_internal.projection in exclusive mode;
    delete from agui_internal.projection;
    insert into agui_internal.usage_mapping as mapping (custom, path, names)
    values (coalesce(map_usage.custom, ''), map_usage.path, map_usage.names)
    on conflict on constraint usage_mapping_pkey do update
    set names = excluded.names, set_at = excluded.set_at;
end
$$;

comment on function agui.map_usage is
    'Says where agents report the tokens that a run used, if not in the member usage of RUN_FINISHED or RUN_ERROR: '
    'path leads from these events, or from the CUSTOM events of the name custom, to an object, or a list of objects, '
    'for example {metadata,usage}, or {value} of a CUSTOM event; {} is the event itself. names '
    'says how a member is called there, by its name in AG-UI, with dots between the names of nested ones: '
    '{"inputTokens": "prompt_tokens"}; others have the names that agui.usage knows. Mappings of other paths or events '
    'stay beside it. Of a run the ends come first, and of an event its own place, then the newest mapping. agui.usage '
    'and, after the next calls of agui.project(), agui.usage_fact read it so, for all '
    'runs. Requires agui_maintainer. '
    'Errors: 22023 no path, an empty name of the event or an unknown member, 42501 the role has not all scopes.';

-- route: merged
create or replace function agui.model_report(since timestamptz default null, until timestamptz default null, scope text default null)
returns table (
    provider text, model text, runs bigint, input_tokens numeric, output_tokens numeric, total_tokens numeric,
    reasoning_tokens numeric, cached_input_tokens numeric, cache_write_input_tokens numeric
)
language plpgsql
stable
security definer
rows 20
set search_path = pg_catalog, pg_temp
-- As in agui.waiting.
set plan_cache_mode = force_custom_plan
set jit = off
as $$
#variable_conflict use_column
declare
    own record;
begin
    select * into own from agui_internal.own_keys_in(model_report.scope);
    return query
    select
        usage.provider,
        usage.model,
        count(distinct (usage.thread_key, usage.run_no)),
        sum(usage.input_tokens),
        sum(usage.output_tokens),
        sum(usage.total_tokens),
        sum(usage.reasoning_tokens),
        sum(usage.cached_input_tokens),
        sum(usage.cache_write_input_tokens)
    from agui.usage_fact as usage
    where usage.thread_key >= own.low and usage.thread_key <= own.high
        and (model_report.since is null or usage.ended_at >= model_report.since)
        and (model_report.until is null or usage.ended_at < model_report.until)
        and (model_report.scope is null or usage.scope = model_report.scope)
    group by usage.provider, usage.model
    order by sum(usage.total_tokens) desc nulls last, usage.provider collate "C", usage.model collate "C";
end
$$;

comment on function agui.model_report is
    'Returns the models that runs used which ended from a time on (null: always) and before another '
    '(null: until now), those with most tokens first. reasoning_tokens is a part of output_tokens, '
    'cached_input_tokens and cache_write_input_tokens are parts of input_tokens. scope: only of a '
    'scope (null: all that the role sees). As of the last call of agui.project().';

create or replace view agui.usage_fact with (security_invoker = true) as
select
    thread.scope,
    thread.thread_id,
    run.run_id,
    activity.agent,
    run.ended_at,
    usage.provider,
    usage.model,
    usage.input_tokens,
    usage.output_tokens,
    usage.total_tokens,
    usage.reasoning_tokens,
    usage.cached_input_tokens,
    usage.cache_write_input_tokens,
    usage.thread_key,
    usage.run_no
from agui.projected_usage as usage
join agui.run as run on run.thread_key = usage.thread_key and run.run_no = usage.run_no
join agui.thread as thread on thread.thread_key = usage.thread_key
left join agui.thread_activity as activity on activity.thread_key = usage.thread_key;

comment on view agui.usage_fact is
    'The tokens that runs used, as agui.project() found them after their ends: a row for each entry of '
    'usage that counts for agui.usage.';
comment on column agui.usage_fact.scope is 'Scope of the thread.';
comment on column agui.usage_fact.thread_id is 'The thread.';
comment on column agui.usage_fact.run_id is 'The run.';
comment on column agui.usage_fact.agent is 'The agent that the thread belongs to (agui.set_thread); null: not set.';
comment on column agui.usage_fact.ended_at is 'When the run ended.';
comment on column agui.usage_fact.provider is 'Who runs the model; null: not named.';
comment on column agui.usage_fact.model is 'The model; null: not named.';
comment on column agui.usage_fact.input_tokens is 'Tokens of the prompt; null: not reported.';
comment on column agui.usage_fact.output_tokens is 'Tokens of the answer; null: not reported.';
comment on column agui.usage_fact.total_tokens is 'As reported, else input_tokens plus output_tokens.';
comment on column agui.usage_fact.reasoning_tokens is 'A part of output_tokens: never add it.';
comment on column agui.usage_fact.cached_input_tokens is 'A part of input_tokens: never add it.';
comment on column agui.usage_fact.cache_write_input_tokens is 'A part of input_tokens: never add it.';
comment on column agui.usage_fact.thread_key is 'Key of the thread.';
comment on column agui.usage_fact.run_no is 'Number of the run in its thread.';

-- route: medians
create or replace function agui.tool_report(since timestamptz default null, until timestamptz default null, scope text default null)
returns table (
    tool text, calls bigint, failed bigint, cut_off bigint, waiting bigint, median_duration interval, p95_duration interval, last_error text
)
language plpgsql
stable
security definer
rows 100
set search_path = pg_catalog, pg_temp
-- As in agui.waiting.
set plan_cache_mode = force_custom_plan
set jit = off
as $$
#variable_conflict use_column
declare
    own record;
begin
    select * into own from agui_internal.own_keys_in(tool_report.scope);
    return query
    select
        call.tool,
        count(*),
        count(*) filter (where call.status = 'failed'),
        count(*) filter (where call.status = 'cut_off'),
        count(*) filter (where call.status = 'called'),
        percentile_disc(0.5) within group (order by call.duration),
        percentile_disc(0.95) within group (order by call.duration),
        (array_agg(call.error order by call.started_at desc) filter (where call.error is not null))[1]
    from agui.tool_fact as call
    where call.thread_key >= own.low and call.thread_key <= own.high
        and (tool_report.since is null or call.started_at >= tool_report.since)
        and (tool_report.until is null or call.started_at < tool_report.until)
        and (tool_report.scope is null or call.scope = tool_report.scope)
    group by call.tool
    order by 3 desc, 2 desc, call.tool collate "C";
end
$$;

comment on function agui.tool_report is
    'Returns the tools that runs called from a time on (null: always) and before another (null: until '
    'now), those with most failures first: calls, how many failed, were cut off, or wait for a result; '
    'the median of the time to the result, the time within which 95 of 100 results came, and the '
    'error of the last call that failed. scope: only of a scope (null: all that the role sees). As of '
    'the last call of agui.project().';

create or replace view agui.tool_fact with (security_invoker = true) as
select
    thread.scope,
    thread.thread_id,
    run.run_id,
    activity.agent,
    call.call_id,
    call.tool,
    case
        when result.error is not null then 'failed'
        when result.result_at is not null then 'completed'
        when run.status in ('cancelled', 'failed', 'cut_off') or not call.is_complete then 'cut_off'
        else 'called'
    end as status,
    result.error,
    call.started_at,
    result.result_at - call.started_at as duration,
    call.argument_bytes,
    result.result_bytes,
    answering.run_id as result_run_id,
    call.thread_key,
    call.run_no
from agui.projected_call as call
join agui.run as run on run.thread_key = call.thread_key and run.run_no = call.run_no
join agui.thread as thread on thread.thread_key = call.thread_key
left join agui.thread_activity as activity on activity.thread_key = call.thread_key
left join lateral (
    select other.run_no, other.result_at, other.result_bytes, other.error
    from agui.projected_call as other
    where call.result_at is null
        and other.thread_key = call.thread_key
        and other.call_id = call.call_id
        and other.tool is null
        and other.run_no > call.run_no
    order by other.run_no
    limit 1
) as later on true
cross join lateral (
    select
        case when call.result_at is not null then call.run_no else later.run_no end as run_no,
        coalesce(call.result_at, later.result_at) as result_at,
        case when call.result_at is not null then call.result_bytes else later.result_bytes end as result_bytes,
        case when call.result_at is not null then call.error else later.error end as error
) as result
left join agui.run as answering on answering.thread_key = call.thread_key and answering.run_no = result.run_no and result.result_at is not null
where call.tool is not null;

comment on view agui.tool_fact is
    'The tool calls of runs that have ended, as agui.project() found them: a row for each call. A call that a later run '
    'of the lineage starts again is the same.';
comment on column agui.tool_fact.scope is 'Scope of the thread.';
comment on column agui.tool_fact.thread_id is 'The thread.';
comment on column agui.tool_fact.run_id is 'The run that made the call.';
comment on column agui.tool_fact.agent is 'The agent that the thread belongs to (agui.set_thread); null: not set.';
comment on column agui.tool_fact.call_id is 'toolCallId.';
comment on column agui.tool_fact.tool is 'Name of the function.';
comment on column agui.tool_fact.status is
    'completed: there is a result; failed: the result is an error (see error); called: it waits for a '
    'result; cut_off: the run ended before the call or its result did.';
comment on column agui.tool_fact.error is
    'What failed, its first 1000 characters; null: nothing. A result is an error if it has a member '
    'error, or if its content begins with the word Error or is an object that begins with a member '
    'error or has "isError": true, or is the JSON string of such a text.';
comment on column agui.tool_fact.started_at is 'When the call was recorded.';
comment on column agui.tool_fact.duration is
    'Until its result was recorded. A result that a client sends with the next run counts from the end of the run that made the call. Null: no result.';
comment on column agui.tool_fact.argument_bytes is 'Size of the arguments in bytes, as JSON writes them.';
comment on column agui.tool_fact.result_bytes is 'Size of the content of the result in bytes, as JSON writes it; null: no result.';
comment on column agui.tool_fact.result_run_id is 'The run that brought the result: the same, or the first later one; null: no result.';
comment on column agui.tool_fact.thread_key is 'Key of the thread.';
comment on column agui.tool_fact.run_no is 'Number of the run in its thread.';

-- role: maintainer; route: each node
create or replace function agui.unmap_usage()
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_unless_operator('say where usage is reported');
    -- A step of the job in progress ends first, also the first one. The next one begins with all runs.
    lock table agui_internal.projection in exclusive mode;
    delete from agui_internal.projection;
    delete from agui_internal.usage_mapping;
    return found;
end
$$;

comment on function agui.unmap_usage is
    'Removes all mappings of agui.map_usage. Returns whether there was one. Requires agui_maintainer. '
    'Errors: 42501 the role has not all scopes.';

-- route: merged
create or replace function agui.waiting(max_rows int default 100, agent text default null, scope text default null)
returns setof agui.interrupt_fact
language plpgsql
stable
security definer
rows 100
set search_path = pg_catalog, pg_temp
-- Indexes have the order of the list. As in agui.thread_page.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_sort = off
set jit = off
as $$
#variable_conflict use_column
declare
    own        record;
    scope_part text;  -- the keys of all threads of a scope begin with it; null: all scopes
begin
    select * into own from agui_internal.own_keys_in(waiting.scope);
    if own.low is null then
        return;  -- before an index is read
    end if;
    if agui_internal.scope_key(own.low) = agui_internal.scope_key(own.high) then
        scope_part := left(own.low::text, 18);
    end if;
    return query
    select
        thread.scope, thread.thread_id, run.run_id, activity.agent, (listed.asked).interrupt_id, (listed.asked).reason, (listed.asked).message,
        (listed.asked).tool_call_id, listed.asked_at, (listed.asked).expires_at, 'waiting', null::text, null::timestamptz, listed.thread_key, listed.run_no,
        case when (listed.asked).is_call then 'call' else 'interrupt' end, agui_internal.tool_of_call(listed.asked), (listed.asked).arguments
    from (
        -- A condition on the variable alone skips an index.
        (
            select interrupt as asked, interrupt.asked_at, interrupt.thread_key, interrupt.run_no
            from agui.projected_interrupt as interrupt
            where scope_part is null and interrupt.is_open is not false
                and interrupt.thread_key >= own.low and interrupt.thread_key <= own.high
            order by interrupt.asked_at, interrupt.thread_key, interrupt.run_no
        )
        union all
        (
            select interrupt, interrupt.asked_at, interrupt.thread_key, interrupt.run_no
            from agui.projected_interrupt as interrupt
            where left(interrupt.thread_key::text, 18) collate "C" = scope_part and interrupt.is_open is not false
                and interrupt.thread_key >= own.low and interrupt.thread_key <= own.high
            order by interrupt.asked_at, interrupt.thread_key, interrupt.run_no
        )
        order by asked_at, thread_key, run_no
    ) as listed
    cross join lateral (
        select state.status
        from agui_internal.interrupt_state(listed.asked) as state
        offset 0
    ) as state
    cross join lateral (
        select stored.scope, stored.thread_id
        from agui.thread as stored
        where stored.thread_key = listed.thread_key
        offset 0
    ) as thread
    cross join lateral (
        select stored.run_id
        from agui.run as stored
        where stored.thread_key = listed.thread_key and stored.run_no = listed.run_no
        offset 0
    ) as run
    left join lateral (
        select stored.agent
        from agui.thread_activity as stored
        where stored.thread_key = listed.thread_key
        offset 0
    ) as activity on true
    where state.status = 'waiting'
        and (waiting.scope is null or thread.scope = waiting.scope)
        and (waiting.agent is null or activity.agent = waiting.agent)
    order by listed.asked_at, listed.thread_key, listed.run_no
    limit max_rows;
end
$$;

comment on function agui.waiting is
    'Returns the interrupts that wait for an answer, of all conversations, those asked first first: a '
    'row for each (agui.interrupt_fact). They are those that a restore of the head has. While a run with the '
    'answer is in progress, they do not wait; if it fails, they do again. Tool calls without a result wait, too (kind call), '
    'if their run finished longer ago than the setting call_delay: until the conversation has the result. '
    'agent, scope: only those of an agent or a scope (null: all that the role sees). As of the last '
    'call of agui.project(). A page reads the interrupts that it shows, and those of other agents.';

create or replace view agui.interrupt_fact with (security_invoker = true) as
select
    thread.scope,
    thread.thread_id,
    run.run_id,
    activity.agent,
    interrupt.interrupt_id,
    interrupt.reason,
    interrupt.message,
    interrupt.tool_call_id,
    interrupt.asked_at,
    interrupt.expires_at,
    state.status,
    answer.run_id as answered_by,
    answer.started_at as answered_at,
    interrupt.thread_key,
    interrupt.run_no,
    case when interrupt.is_call then 'call' else 'interrupt' end as kind,
    agui_internal.tool_of_call(interrupt) as tool,
    interrupt.arguments
from agui.projected_interrupt as interrupt
join agui.run as run on run.thread_key = interrupt.thread_key and run.run_no = interrupt.run_no
join agui.thread as thread on thread.thread_key = interrupt.thread_key
left join agui.thread_activity as activity on activity.thread_key = interrupt.thread_key
cross join lateral agui_internal.interrupt_state(interrupt) as state
left join agui.run as answer on answer.thread_key = interrupt.thread_key and answer.run_no = state.answer_no
-- What a page answers at once is no question.
where interrupt.is_call is not true
    or state.status in ('waiting', 'answering')
    or answer.started_at > interrupt.asked_at + agui_internal.setting_value('call_delay') * interval '1 second';

comment on view agui.interrupt_fact is
    'The interrupts with which runs ended, and the tool calls without a result that wait or have waited for longer than '
    'the setting call_delay, as agui.project() found them: a row for each.';
comment on column agui.interrupt_fact.scope is 'Scope of the thread.';
comment on column agui.interrupt_fact.thread_id is 'The thread.';
comment on column agui.interrupt_fact.run_id is 'The run that asks.';
comment on column agui.interrupt_fact.agent is 'The agent that the thread belongs to (agui.set_thread); null: not set.';
comment on column agui.interrupt_fact.interrupt_id is 'id of the interrupt; null: it has none.';
comment on column agui.interrupt_fact.reason is 'Why the agent asks, as a word; null: not said.';
comment on column agui.interrupt_fact.message is 'The question, its first 1000 characters; null: none.';
comment on column agui.interrupt_fact.tool_call_id is 'The tool call that waits, or that the interrupt is about; null: none.';
comment on column agui.interrupt_fact.asked_at is 'When the run ended.';
comment on column agui.interrupt_fact.expires_at is 'Until when an answer counts; null: no limit.';
comment on column agui.interrupt_fact.status is
    'waiting: it is open after the head; answering: the head continues the run that asks, and is in progress; '
    'answered: a run that continues it has finished, or the conversation went on in another branch; expired: '
    'expires_at has passed without an answer. A run that failed answers no interrupt. A call is answered by a run that '
    'brings its result, and by no other.';
comment on column agui.interrupt_fact.answered_by is 'The first run that continues it and has finished, or the one in progress; null: none.';
comment on column agui.interrupt_fact.answered_at is 'When that run began; null: none did.';
comment on column agui.interrupt_fact.thread_key is 'Key of the thread.';
comment on column agui.interrupt_fact.run_no is 'Number of the run in its thread.';
comment on column agui.interrupt_fact.kind is
    'interrupt, or call: the run finished without a result of a tool call. If the input of the run lists tools, it is one of them.';
comment on column agui.interrupt_fact.tool is 'Name of the function of the tool call; null: no call.';
comment on column agui.interrupt_fact.arguments is 'The arguments of a call that waits, their first 1000 characters; null: it is an interrupt.';
