create or replace function agui_internal.chain_beginning(thread_key uuid, parent_no int, input_hash bytea)
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
        || coalesce('\x01'::bytea || input_hash, '\x00'::bytea);
end
$$;

comment on function agui_internal.chain_beginning(uuid, int, bytea) is
    'What the first link of a run covers in addition: its parent, and sha256 of the input stored '
    'beside its events (null: none).';

revoke execute on function agui_internal.chain_beginning(uuid, int, bytea) from public;
