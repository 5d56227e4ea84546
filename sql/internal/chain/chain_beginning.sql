create or replace function agui_internal.chain_beginning(thread_key uuid, parent_no int, input json)
returns bytea
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return '\x01'::bytea
        || coalesce(
            (
                select '\x01'::bytea || agui_internal.chain_text(parent.run_id)
                from agui.run as parent
                where parent.thread_key = chain_beginning.thread_key and parent.run_no = chain_beginning.parent_no
            ),
            '\x00'::bytea
        )
        || coalesce('\x01'::bytea || sha256(convert_to(input::text, 'UTF8')), '\x00'::bytea);
end
$$;

comment on function agui_internal.chain_beginning(uuid, int, json) is
    'What the first link of a run covers in addition: its parent, and the hash of the input stored '
    'beside its events.';

revoke execute on function agui_internal.chain_beginning(uuid, int, json) from public;
