create or replace function agui.merge_base(thread_id text, run_a text, run_b text, scope text default '')
returns text
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    a agui.run := agui_internal.find_run(thread_id, run_a, scope);
    b agui.run := agui_internal.find_run(thread_id, run_b, scope);
    swap agui.run;
begin
    -- A parent has a smaller number than its children. So the younger of the two runs cannot be an
    -- ancestor of the other, and it is replaced by its parent.
    while a.run_no <> b.run_no loop
        if a.run_no < b.run_no then
            swap := a;
            a := b;
            b := swap;
        end if;
        if a.parent_no is null then
            return null;
        end if;
        select * into a
        from agui.run as run
        where run.thread_key = a.thread_key and run.run_no = a.parent_no;
    end loop;
    return a.run_id;
end
$$;

comment on function agui.merge_base(text, text, text, text) is
    'Returns the last run that the lineages of two runs share, or null if they have different '
    'roots. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key.';

revoke execute on function agui.merge_base(text, text, text, text) from public;
