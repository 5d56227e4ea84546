create or replace function agui_internal.apply_rules_to(thread_key uuid)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    run     agui.run;
    ending  record;
    run_nos int[];
begin
    -- The ends of runs. Of those that the webhooks have reported nothing is sent again.
    for run in
        select stored.*
        from agui.run as stored
        where stored.thread_key = apply_rules_to.thread_key and stored.status <> 'running'
            and exists (
                select
                from agui.batch as batch
                where batch.thread_key = stored.thread_key and batch.run_no = stored.run_no
                    and batch.first_seq between stored.first_seq and stored.last_seq
                    and agui_internal.may_begin_or_end(batch.events)
                    and (strpos(batch.events::text, 'RUN_ERROR') > 0 or strpos(batch.events::text, agui_internal.question_name()) > 0 or strpos(batch.events::text, '\u00') > 0)
            )
    loop
        ending := agui_internal.last_end(run.thread_key, run.run_no);
        continue when ending.seq is null or ending.seq = run.end_seq and (ending.status <> 'interrupted' or run.status = 'interrupted');
        update agui.run as corrected
        set status = case when run.cut_off_reason is not null and ending.status = 'failed' then 'cut_off' else ending.status end,
            end_seq = ending.seq,
            changed_in = pg_current_xact_id()
        where corrected.thread_key = run.thread_key and corrected.run_no = run.run_no
        returning corrected.* into run;
        insert into agui_internal.webhook_request (webhook, event_id, thread_key, kind, ended_at, outcome)
        select webhook.name, agui_internal.webhook_event_id(run.thread_key, run.run_no, run.started_at, run.end_seq, known.kind), run.thread_key, known.kind, run.ended_at, 'not sent: corrected by an upgrade'
        from agui.webhook as webhook
        -- A failed run may open the question again that it was to answer.
        cross join unnest(array[agui_internal.webhook_kind(run.status), 'run.waiting']) as known (kind)
        where known.kind = any (webhook.kinds)
        on conflict on constraint webhook_request_pkey do nothing;
    end loop;

    -- The snapshots. The log bytes say that compaction has processed a run.
    run_nos := array(
        select snapshot.run_no
        from agui.snapshot as snapshot
        where snapshot.thread_key = apply_rules_to.thread_key and snapshot.rules is distinct from agui_internal.rules()
    );
    if run_nos <> '{}' then
        perform agui_internal.drop_snapshots(thread_key, run_nos);
        update agui.run as compacted
        set n = null,
            log_bytes = null
        where compacted.thread_key = apply_rules_to.thread_key and compacted.run_no = any (run_nos) and compacted.log_bytes is not null;
    end if;
end
$$;

comment on function agui_internal.apply_rules_to(uuid) is
    'Sets the statuses of the runs of a thread to what their logs say by the present rules, and drops '
    'its snapshots of older rules, so that compaction makes them again. The caller holds the thread.';

revoke execute on function agui_internal.apply_rules_to(uuid) from public;
