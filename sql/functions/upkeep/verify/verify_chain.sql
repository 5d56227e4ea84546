create or replace function agui_internal.verify_chain(thread_key uuid)
returns setof agui.verify_row
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    -- The first run that must be chained. A transaction that was in progress when the chain was
    -- enabled may not have seen it, so a minute is allowed for.
    due_seq constant bigint := (
        select run.first_seq
        from agui.run as run
        where run.thread_key = verify_chain.thread_key
            and run.started_at > (
                select min(chained.since) + interval '1 minute'
                from agui.thread as thread
                join agui_internal.chained_scope as chained
                    on chained.is_all or chained.scope = thread.scope
                where thread.thread_key = verify_chain.thread_key
            )
        order by run.run_no
        limit 1
    );
    first_hash_seq constant bigint := (
        select min(batch.first_seq)
        from agui.batch as batch
        where batch.thread_key = verify_chain.thread_key and batch.hash is not null
    );
begin
    return query
        select run.run_id,
            format(
                case
                    when batch.first_seq > first_hash_seq then 'chain: the batch at seq %s has no hash, but what precedes it is chained'
                    else 'chain: the batch at seq %s has no hash, although its run began after agui.enable_chain'
                end,
                batch.first_seq
            ),
            'damage'
        from agui.batch as batch
        left join agui.run as run
            on run.thread_key = batch.thread_key and run.run_no = batch.run_no
        where batch.thread_key = verify_chain.thread_key
            and batch.hash is null
            -- Of those before the first hash, the first one that must have one is sufficient.
            and (
                batch.first_seq > first_hash_seq
                or batch.first_seq = (
                    select min(due.first_seq)
                    from agui.batch as due
                    where due.thread_key = verify_chain.thread_key and due.first_seq >= due_seq
                )
            )
        order by batch.first_seq;
end
$$;

comment on function agui_internal.verify_chain(uuid) is
    'The batches of a thread that must have a hash (agui.enable_chain) and have none. Whether hashes '
    'are right is computed by pgagui verify --chain, outside of the database.';

revoke execute on function agui_internal.verify_chain(uuid) from public;
