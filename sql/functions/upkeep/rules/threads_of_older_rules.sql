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

comment on function agui_internal.threads_of_older_rules() is
    'How many threads of the scopes of the caller wait for agui_internal.apply_rules.';

revoke execute on function agui_internal.threads_of_older_rules() from public;
