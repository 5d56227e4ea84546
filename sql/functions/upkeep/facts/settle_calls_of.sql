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

comment on function agui_internal.settle_calls_of(uuid, timestamptz) is
    'Notes which calls of a thread, of runs that ended before a time, wait: those to which the conversation has no '
    'result after its last run that has ended.';

revoke execute on function agui_internal.settle_calls_of(uuid, timestamptz) from public;
