create or replace function agui_internal.begin_unarchive(scope text, thread_id text, created_at timestamptz)
returns uuid
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    key constant uuid := agui_internal.own_thread_key(scope, thread_id);
begin
    -- A thread may have no run: the name stands for one.
    perform agui_internal.inspect_ids(thread_id, 'run', scope, 'unarchive');
    perform agui_internal.lock_thread(key);
    perform agui_internal.refuse_erased(key, 'unarchive');
    perform
    from agui_internal.claim as claim
    where claim.thread_key = key and agui_internal.claim_alive_until(claim.seen_at) > clock_timestamp();
    if found then
        raise exception using
            errcode = 'UI006',
            message = 'unarchive: a run of the thread is claimed',
            hint = 'Wait until the run has ended, or release the claim.';
    end if;
    if not agui_internal.ensure_thread(key, scope, thread_id, created_at) then
        raise exception using
            errcode = '23505',
            message = 'unarchive: the thread exists already';
    end if;
    return key;
end
$$;

comment on function agui_internal.begin_unarchive(text, text, timestamptz) is
    'Creates a thread for the rows of an archive, and returns its key. The transaction goes on with '
    'agui_internal.unarchive_rows and ends with agui_internal.finish_unarchive. UI006: a run of it '
    'is claimed; UI008, UI011: its ids; UI014: it was erased; 23505: it exists.';

revoke execute on function agui_internal.begin_unarchive(text, text, timestamptz) from public;
