create or replace function agui.consume(consumer text, max_rows int default 1000, scope text default null)
returns setof agui.consumed_run
language plpgsql
stable
security definer
rows 200
set search_path = pg_catalog, pg_temp
as $$
declare
    key constant uuid := agui_internal.consumer_key(consumer, scope);
begin
    return query
        select change.*, coalesce(consumed.read_seq, 0)
        from agui.changes(
            (select known.position from agui.consumer as known where known.consumer_key = key), max_rows, scope
        ) as change
        left join agui_internal.consumer_thread as consumed
            on consumed.thread_key = agui.thread_key(change.scope, change.thread_id) and consumed.consumer_key = key;
end
$$;

comment on function agui.consume(text, int, text) is
    'Returns what agui.changes returns behind the place of a consumer: a reader with a name, whose '
    'place the database keeps. It begins with all runs. The place stays until agui.move_consumer is '
    'called with the position of a row: after the rows up to it were processed, or in the same '
    'transaction. So each change is processed at least once. read_seq: how far agui.mark_read has '
    'noted that the events of the thread were processed. scope: the consumer of a scope (null: of all, '
    'which a role with one scope may not be). Errors: UI024 the place is of another '
    'history of transactions, so the consumer has to begin again, UI011 max_rows is not from 1 to 10000.';

revoke execute on function agui.consume(text, int, text) from public;
