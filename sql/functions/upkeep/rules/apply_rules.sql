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

comment on function agui_internal.apply_rules() is
    'After an upgrade that changed the rules of folds (agui_internal.rules): goes on with the next '
    'threads, and returns how many it has done. 0: all are done, the next one is in use, another call '
    'is in progress, or the role has not all scopes. When all are done, agui.project() takes the facts '
    'of all runs again.';

revoke execute on function agui_internal.apply_rules() from public;
