create or replace function agui_internal.finish_unarchive(thread_key uuid, tables jsonb, digests jsonb)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
-- Plans made while the tables were small would read them whole for each thread.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
    problem text;
begin
    perform agui_internal.own_key(thread_key);
    perform agui_internal.rebuild_activity(thread_key);
    select string_agg(name, ', ' order by name) into problem
    from jsonb_each(agui_internal.content_digests(thread_key, tables)) as stored (name, digest)
    full join jsonb_each(digests) as expected (name, digest) using (name)
    -- Tombstones of this database may come to those of the archive.
    where stored.digest is distinct from expected.digest and name <> 'agui.erasure';
    if problem is not null then
        raise exception using
            errcode = 'data_corrupted',
            message = format('what is stored of the thread with key %s is not what was archived: %s', thread_key, problem);
    end if;
    select verified.problem into problem
    from agui_internal.verify_log(thread_key) as verified
    where verified.severity = 'damage'
    limit 1;
    if found then
        raise exception using
            errcode = 'data_corrupted',
            message = format('the archived thread with key %s is damaged: %s', thread_key, problem),
            hint = 'Run "pgagui verify" where the archive comes from.';
    end if;
end
$$;

comment on function agui_internal.finish_unarchive(uuid, jsonb, jsonb) is
    'Checks a thread that was stored by agui_internal.unarchive_rows: its rows have the hashes that '
    'they had in the source (agui_internal.content_digests), and agui_internal.verify_log finds no '
    'damage. XX001: otherwise. The caller then commits.';

revoke execute on function agui_internal.finish_unarchive(uuid, jsonb, jsonb) from public;
