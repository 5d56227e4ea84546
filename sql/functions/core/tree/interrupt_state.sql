-- The only place that says what becomes of a question. Lists, facts and webhooks use it.
create or replace function agui_internal.interrupt_state(
    thread_key uuid, run_no int, expires_at timestamptz, out status text, out answer_no int
)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    head    record;
    reached int[] := array[interrupt_state.run_no];  -- the runs after which it is open
begin
    select last.run_no, last.status into head
    from agui.run as last
    where last.thread_key = interrupt_state.thread_key
    order by last.run_no desc
    limit 1;
    if head.run_no > interrupt_state.run_no then
        with recursive reach (run_no) as (
            select interrupt_state.run_no
            union all
            select child.run_no
            from reach
            cross join lateral (
                select run
                from agui.run as run
                where run.thread_key = interrupt_state.thread_key and run.parent_no = reach.run_no
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
    elsif head.run_no = any (reached) and (expires_at <= clock_timestamp()) is not true then
        status := 'waiting';
    elsif head.run_no = any (reached) then
        status := 'expired';
    else
        select min(child.run_no) into answer_no
        from unnest(reached) as open (run_no)
        cross join lateral (
            select run.run_no
            from agui.run as run
            where run.thread_key = interrupt_state.thread_key and run.parent_no = open.run_no
            offset 0
        ) as child
        where child.run_no <> all (reached);
        status := case when answer_no is null and expires_at <= clock_timestamp() then 'expired' else 'answered' end;
    end if;
end
$$;

comment on function agui_internal.interrupt_state(uuid, int, timestamptz) is
    'What became of an interrupt with which a run ended. waiting: a restore of the head has it. answering: the head, '
    'which continues the run that asks, is in progress. answered: a run that continues it came to its RUN_FINISHED, or '
    'the conversation went on in another branch (answer_no is null). expired: expires_at has passed without an answer. '
    'A run that fails or breaks off before its RUN_FINISHED answers nothing.';

revoke execute on function agui_internal.interrupt_state(uuid, int, timestamptz) from public;
