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

comment on function agui_internal.project_runs(uuid[], int[]) is
    'Projects runs: stores what agui.run_fact and its like, and agui.search, say of them, in place of what '
    'was stored before. Runs in progress, and those that are gone, are left out.';

revoke execute on function agui_internal.project_runs(uuid[], int[]) from public;
