-- After an upgrade that changed the rules of folds: what older rules have stored. The version of
-- the rules stands in protocol/events.json and with each snapshot. It counts up when a release
-- gives stored events another meaning.
--
-- - A snapshot of other rules is not used: reads fold the log (agui_internal.rules).
-- - A migration of that release puts a row into agui_internal.older_rules. apply_rules continues
--   from there in steps, called by compact and project: statuses of runs become what their logs
--   say, and snapshots of older rules are dropped. Compaction makes them again. The last step has
--   agui.project() read all runs. agui.verify leaves statuses alone until then.
-- - Webhooks send nothing about what is corrected.
-- - A program asks for the limits of folds, and names its rules (limits_of_folds). With others than
--   those of the database it is refused. So an older worker cannot store what the new rules do not
--   say.

-- role: worker
create or replace function agui_internal.apply_rules()
returns int
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    -- Of a step, which is a transaction. Appends wait for the thread at hand.
    most_threads constant int := 100;
    most_time    constant interval := '200 ms';
    began_at     constant timestamptz := clock_timestamp();
    own      record;
    next_key uuid;
    done_n   int := 0;
begin
    select * into own from agui_internal.own_keys();
    if (own.low = '00000000-0000-0000-0000-000000000000' and own.high = 'ffffffff-ffff-ffff-ffff-ffffffffffff') is not true then
        return 0;  -- a role with all scopes does it
    end if;
    select older.thread_key into next_key from agui_internal.older_rules as older for update skip locked;
    if not found then
        return 0;
    end if;
    while done_n < most_threads and clock_timestamp() < began_at + most_time loop
        select thread.thread_key into next_key
        from agui.thread as thread
        where thread.thread_key > next_key
        order by thread.thread_key
        limit 1;
        if not found then
            delete from agui_internal.older_rules;
            -- agui.project() reads all runs.
            delete from agui_internal.projection;
            return done_n;
        end if;
        -- As an append and a compactor hold it.
        exit when not pg_try_advisory_xact_lock(agui_internal.thread_lock_id(next_key));
        perform from agui.thread as thread where thread.thread_key = next_key for no key update skip locked;
        exit when not found;
        perform agui_internal.apply_rules_to(next_key);
        update agui_internal.older_rules set thread_key = next_key;
        done_n := done_n + 1;
    end loop;
    return done_n;
end
$$;

comment on function agui_internal.apply_rules is
    'After an upgrade that changed the rules of folds (agui_internal.rules): goes on with the next '
    'threads, and returns how many it has done. 0: all are done, the next one is in use, another call '
    'is in progress, or the role has not all scopes. When all are done, agui.project() takes the facts '
    'of all runs again.';

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

comment on function agui_internal.apply_rules_to is
    'Sets the statuses of the runs of a thread to what their logs say by the present rules, and drops '
    'its snapshots of older rules, so that compaction makes them again. The caller holds the thread.';

create or replace function agui_internal.threads_of_older_rules()
returns bigint
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    own record;
begin
    select * into own from agui_internal.monitored_keys();
    return (
        select count(*)
        from agui_internal.older_rules as older
        join agui.thread as thread on thread.thread_key > older.thread_key
        where thread.thread_key >= own.low and thread.thread_key <= own.high
    );
end
$$;

comment on function agui_internal.threads_of_older_rules is
    'How many threads of the scopes of the caller wait for agui_internal.apply_rules.';

-- How far the jobs are is so for all scopes.
-- check: none
create or replace function agui_internal.waits_for_rules(thread_key uuid)
returns boolean
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return exists (select from agui_internal.older_rules as older where older.thread_key < waits_for_rules.thread_key);
end
$$;

comment on function agui_internal.waits_for_rules is
    'Whether a thread waits for agui_internal.apply_rules, which does the threads in the order of their keys.';
