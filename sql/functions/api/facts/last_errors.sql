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
        left join agui.projected_run as fact
            on fact.thread_key = leaf.thread_key and fact.run_no = (listed.run).run_no
        left join (
            select distinct call.run_no
            from agui.projected_call as call
            where call.thread_key = leaf.thread_key and call.error is not null
        ) as failed
            on failed.run_no = (listed.run).run_no
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

comment on function agui.last_errors(text, text, bigint, int, boolean, text) is
    'Returns the last errors of a thread up to event at_seq (null: its end), all branches, or of the '
    'lineage of run_id, or (lineage => false) of that run alone, or else the head: runs that failed, '
    'were cut off or were cancelled, and tool calls whose result is an error. A page has up to '
    'max_rows (default 100, at most 1,000), or a few more if they have one seq, in the order of seq; to '
    'read the page before it, pass its next_seq as at_seq. Of a run that agui.project() has read, its facts say whether a tool '
    'call failed, and its log is read only if one did; the logs of the others are read, of up to '
    '200 runs for a page. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI011 max_rows is out of range, UI012 '
    'another thread has the same key.';

revoke execute on function agui.last_errors(text, text, bigint, int, boolean, text) from public;
