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

comment on function agui.answered(text, text, text, text[], json, text) is
    'One row: which run of the lineage of a run (null: of the head) asks what an answer is to, and whether that is answered: '
    'answered_by is the run that did, and answered_at when it began (null: it is open). interrupt_ids: those that the '
    'answer names; the last run counts that asks one of them. question: the value of the CUSTOM event that asked, which clients '
    'repeat as interruptEvent; without ids the last run counts that asks this. If there is none, it is the run asked_by, or the last of '
    'the runs with answers to it (ids that begin with asked_by and -answer-) that asks. Without ids and asked_by, it is the last run that '
    'asks. asking_run_id is null if the lineage has no such run. As in restore, a run that fails or '
    'breaks off answers nothing. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key.';

revoke execute on function agui.answered(text, text, text, text[], json, text) from public;
