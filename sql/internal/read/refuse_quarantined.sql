create or replace function agui_internal.refuse_quarantined(run agui.run, until bigint)
returns void
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    failed record;
begin
    -- As a rule there is no such note, and this is one look into an index.
    perform
    from agui_internal.job_note as note
    where note.job = 'compact' and note.thread_key = run.thread_key and note.run_no > 0 and note.attempts > 1;
    if not found then
        return;
    end if;
    select member.run_id, note.attempts, note.error
    into failed
    from agui_internal.job_note as note
    join agui.run as member
        on member.thread_key = note.thread_key and member.run_no = note.run_no
    where note.job = 'compact'
        and note.thread_key = run.thread_key
        and note.attempts > 1
        and member.log_bytes is null
        and member.first_seq <= coalesce(until, 9223372036854775807)
        and exists (select from agui_internal.ancestors(run) as member_of where member_of.run_no = member.run_no)
    order by note.run_no
    limit 1;
    if found then
        raise exception using
            errcode = 'UI022',
            message = format('run "%s" is in quarantine: compaction failed at it %s times%s',
                failed.run_id, failed.attempts, coalesce(', the last time with: ' || failed.error, '')),
            hint = 'Its events can be read (agui.events). agui.quarantine says when it is tried next, agui.retry lets that be at once.';
    end if;
end
$$;

comment on function agui_internal.refuse_quarantined(agui.run, bigint) is
    'Refuses (UI022) to fold the lineage of a run, up to a seq (null: all of it), where compaction failed at a run of it twice: a read would take as '
    'much time and memory as that did.';

revoke execute on function agui_internal.refuse_quarantined(agui.run, bigint) from public;
