create or replace function agui_internal.commit_to_disk()
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    if current_setting('synchronous_commit') = 'off' then
        perform set_config('synchronous_commit', 'on', true);
    end if;
end
$$;

comment on function agui_internal.commit_to_disk() is
    'Makes the commit of the transaction wait for the disk. A step of a move that a crash of one node '
    'takes back would leave a thread on two nodes, or on none.';

revoke execute on function agui_internal.commit_to_disk() from public;
