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

comment on function agui_internal.interrupt_state(agui.projected_interrupt) is
    'What became of an interrupt with which a run ended, or of a tool call without a result. waiting: a restore of the head '
    'has it; of a call, as of the last call of the job. answering: the head, which continues the run that asks, is in '
    'progress, or has just ended. answered: a run that continues it came to its RUN_FINISHED, or the conversation went on in '
    'another branch (answer_no is null); a call: a later run brought its result. expired: expires_at has passed without an '
    'answer. null: a call that does not wait, and that no run answered. '
    'A run that fails or breaks off before its RUN_FINISHED answers no interrupt.';

revoke execute on function agui_internal.interrupt_state(agui.projected_interrupt) from public;
