create or replace function agui_internal.verify_facts(thread_key uuid)
returns setof agui.verify_row
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
    run_nos int[];
    runs    agui.run[];
begin
    -- A run that has changed since is projected by the next call of the job.
    select array_agg(run.run_no), array_agg(run) into run_nos, runs
    from agui.projected_run as projected
    join agui.run as run
        on run.thread_key = projected.thread_key and run.run_no = projected.run_no
    where projected.thread_key = verify_facts.thread_key
        and projected.changed_in is not distinct from run.changed_in
        and run.status <> 'running';

    return query
    with stored as (
        select projected.run_no, 'the run' as about, to_jsonb(projected) as fact
        from agui.projected_run as projected
        where projected.thread_key = verify_facts.thread_key
        union all
        select call.run_no, 'its tool calls', to_jsonb(call)
        from agui.projected_call as call
        where call.thread_key = verify_facts.thread_key
        union all
        select interrupt.run_no, 'its interrupts', to_jsonb(interrupt) - '{is_open,arguments}'::text[]
        from agui.projected_interrupt as interrupt
        where interrupt.thread_key = verify_facts.thread_key
        union all
        select usage.run_no, 'its tokens', to_jsonb(usage)
        from agui.projected_usage as usage
        where usage.thread_key = verify_facts.thread_key
    ),
    found as (
        select told.run_no, told.about, told.fact
        from agui_internal.facts_of_runs(runs) as of_run
        cross join lateral (
            values
                ((of_run.run_fact).run_no, 'the run', to_jsonb(of_run.run_fact)),
                ((of_run.call_fact).run_no, 'its tool calls', to_jsonb(of_run.call_fact)),
                ((of_run.interrupt_fact).run_no, 'its interrupts', to_jsonb(of_run.interrupt_fact) - '{is_open,arguments}'::text[]),
                ((of_run.usage_fact).run_no, 'its tokens', to_jsonb(of_run.usage_fact))
        ) as told (run_no, about, fact)
        where told.run_no is not null
        union all
        select answer.run_no, 'its tool calls', to_jsonb(answer)
        from agui_internal.answers_of_runs(runs) as answer
    ),
    different as (
        select coalesce(stored.run_no, found.run_no) as run_no, coalesce(stored.about, found.about) as about
        from (select * from stored where stored.run_no = any (run_nos)) as stored
        full join found on found.run_no = stored.run_no and found.about = stored.about and found.fact = stored.fact
        where stored.fact is null or found.fact is null
        union
        select stored.run_no, stored.about
        from stored
        where not exists (
            select
            from agui.projected_run as projected
            where projected.thread_key = verify_facts.thread_key and projected.run_no = stored.run_no
        )
        union
        -- agui.waiting would not find it.
        select interrupt.run_no, 'its interrupts'
        from agui.projected_interrupt as interrupt
        where interrupt.thread_key = verify_facts.thread_key and not interrupt.is_open and interrupt.is_call is not true
            -- The job has read how the runs after it ended.
            and not exists (
                select
                from agui.run as later
                left join agui.projected_run as projected
                    on projected.thread_key = later.thread_key and projected.run_no = later.run_no
                where later.thread_key = interrupt.thread_key and later.run_no > interrupt.run_no
                    and projected.changed_in is distinct from later.changed_in
            )
            and agui_internal.may_wait(interrupt)
    )
    select run.run_id, format('the facts about %s are not those of the log: "pgagui project --rebuild" reads it again', string_agg(different.about, ' and ' order by different.about desc)), 'damage'
    from different
    left join agui.run as run
        on run.thread_key = verify_facts.thread_key and run.run_no = different.run_no
    group by different.run_no, run.run_id
    order by different.run_no;

    if not exists (select from agui_internal.search) then
        return;
    end if;
    -- Which of its runs has a text depends on the order in which they were read.
    return query
    with stored as (
        select said.print, said.run_no, said.text
        from agui.message_text as said
        where said.thread_key = verify_facts.thread_key
    ),
    found as (
        select said.print, said.run_no, said.text
        from agui_internal.texts_of_runs(array(select told from agui_internal.news_of_runs(runs) as told)) as said
    ),
    different as (
        select coalesce(stored.run_no, found.run_no) as run_no
        from stored
        full join found on found.print = stored.print and found.text = stored.text
        where stored.print is null or found.print is null and stored.run_no = any (run_nos)
    )
    select run.run_id, 'the texts of its messages that are searched are not those of the log: "pgagui project --rebuild" reads it again', 'damage'
    from agui.run as run
    where run.thread_key = verify_facts.thread_key and run.run_no in (select different.run_no from different)
    order by run.run_no;
end
$$;

comment on function agui_internal.verify_facts(uuid) is
    'The runs of a thread about which agui.projected_run and its like, or agui.message_text, do not say '
    'what the log says.';

revoke execute on function agui_internal.verify_facts(uuid) from public;
