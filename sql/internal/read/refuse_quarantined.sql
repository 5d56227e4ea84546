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
    -- Usually there is no such note, and this is one look-up in an index.
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
            hint = 'Its events can still be read (agui.events). agui.quarantine says when compaction retries; agui.retry lets it retry at once.';
    end if;
end
$$;

comment on function agui_internal.refuse_quarantined(agui.run, bigint) is
    'Raises UI022 if compaction failed twice at a run on the lineage that is to be folded, up to a '
    'seq (null: all of it). A read would take as much time and memory as those attempts.';

revoke execute on function agui_internal.refuse_quarantined(agui.run, bigint) from public;
