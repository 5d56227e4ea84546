create or replace function agui_internal.verify_log(thread_key uuid)
returns setof agui.verify_row
language plpgsql
stable
security definer
-- Not parallel safe: before PostgreSQL 17 a parallel query cannot catch errors.
set search_path = pg_catalog, pg_temp
-- In a large store the estimates are high, and compiling would take most of the time.
set jit = off
as $$
begin
    thread_key := agui_internal.visible_key(thread_key);
    return query select * from agui_internal.verify_thread(thread_key);
    return query select * from agui_internal.verify_batches(thread_key);
    return query select * from agui_internal.verify_chain(thread_key);
    return query select * from agui_internal.verify_tree(thread_key);
    return query select * from agui_internal.verify_saved(thread_key);
    begin
        return query select * from agui_internal.verify_inputs(thread_key);
    exception
        when others then
            return next (null, 'the inputs cannot be read: ' || sqlerrm, 'damage')::agui.verify_row;
    end;
    begin
        return query select * from agui_internal.verify_runs(thread_key);
    exception
        when others then
            return next (null, 'runs and log cannot be compared: ' || sqlerrm, 'damage')::agui.verify_row;
    end;
end
$$;

comment on function agui_internal.verify_log(uuid) is
    'The damage of what was appended to a thread (its row, batches, runs and their tree) and of '
    'what was saved in it. None of it can be rebuilt. Also notes on what agents did against the '
    'protocol.';

revoke execute on function agui_internal.verify_log(uuid) from public;
