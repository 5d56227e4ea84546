create or replace function agui_internal.refuse_quarantined(run agui.run, until bigint, of_job boolean default false)
returns void
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    failed record;
begin
    -- Usually there is no such note, and this is one look-up in an index.
    perform
    from agui_internal.job_note as note
    where note.job in ('compact', 'compact_running')
        and note.thread_key = run.thread_key
        and note.run_no > 0
        and (note.speaks_against_run or of_job and note.attempts > 1);
    if not found then
        return;
    end if;
    select member.run_id, note.speaks_against_run, note.error
    into failed
    from agui_internal.job_note as note
    join agui.run as member
        on member.thread_key = note.thread_key and member.run_no = note.run_no
    where note.thread_key = run.thread_key
        and (note.speaks_against_run or of_job and note.attempts > 1)
        and case note.job
            when 'compact' then member.log_bytes is null and member.first_seq <= coalesce(until, 9223372036854775807)
            -- A read of its beginning may succeed.
            when 'compact_running' then member.status = 'running' and until is null and not of_job
            else false
        end
        and exists (select from agui_internal.ancestors(run) as member_of where member_of.run_no = member.run_no)
    order by note.run_no
    limit 1;
    if found then
        raise exception using
            errcode = 'UI022',
            message = format('run "%s" is in quarantine: compaction %s%s',
                failed.run_id,
                case when failed.speaks_against_run then 'failed at it' else 'was interrupted at it several times' end,
                coalesce(': ' || failed.error, '')),
            hint = 'Its events can still be read (agui.events). agui.quarantine says when compaction retries; once the cause is gone, agui.retry lets compaction and reads retry at once.';
    end if;
end
$$;

comment on function agui_internal.refuse_quarantined(agui.run, bigint, boolean) is
    'Raises UI022 if compaction failed at a run on the lineage that is to be folded, up to a seq '
    '(null: all of it), with an error that speaks against the run (agui_internal.failure_kind): a '
    'read would fail alike, and take as long. of_job: also if compaction was interrupted there '
    'twice, because the run may have caused it.';

revoke execute on function agui_internal.refuse_quarantined(agui.run, bigint, boolean) from public;
