create or replace function agui.retry(job text default null, thread_id text default null, scope text default '')
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    key     uuid := case when thread_id is not null then agui_internal.key_to_change(thread_id, scope) end;
    own     record;
    retried bigint;
    facts   bigint;
begin
    select * into own from agui_internal.own_keys();
    -- A run that has no facts is found by its note alone.
    update agui_internal.job_note as note
    set next_at = null
    where note.job = 'project' and (retry.job is null or note.job = retry.job)
        and (key is null or note.thread_key = key)
        and note.thread_key >= own.low
        and note.thread_key <= own.high;
    get diagnostics facts = row_count;
    delete from agui_internal.job_note as note
    where (retry.job is null or note.job = retry.job)
        and note.job <> 'project'
        and (key is null or note.thread_key = key)
        and (note.error is not null or note.attempts > 1)
        and note.thread_key >= own.low
        and note.thread_key <= own.high;
    get diagnostics retried = row_count;
    return retried + facts;
end
$$;

comment on function agui.retry(text, text, text) is
    'Ends the wait of runs in agui.quarantine, so that the next call of a job (null: of every job) '
    'retries them at once: the runs of a thread, or (null) of all threads in the scopes of the '
    'role. Returns the number of entries. '
    'Errors: UI012 another thread has the same key.';

revoke execute on function agui.retry(text, text, text) from public;
