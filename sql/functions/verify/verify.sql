create or replace function agui.verify(thread_id text, scope text default '')
returns setof agui.problem
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    key uuid := (agui.find_run(thread_id, null, scope)).thread_key;
begin
    return query select * from agui.verify_log(key);
    return query select * from agui.verify_runs(key);
    return query select * from agui.verify_snapshots(key);
end
$$;

comment on function agui.verify(text, text) is
    'Checks a thread: seqs without gaps, batches, bounds and parents of runs, and every snapshot against a fold of the raw log. '
    'One row a problem, no row when all is well. AG001: unknown thread.';

revoke execute on function agui.verify(text, text) from public;
