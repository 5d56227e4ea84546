create or replace function agui.move_consumer(consumer text, after text, scope text default null)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.refuse_foreign_scope(scope, 'change a consumer of all scopes');
    perform agui_internal.place_of_position(after);
    if consumer is null or consumer = '' or octet_length(consumer) > 200 then
        raise exception using
            errcode = '22023',
            message = format('"%s" is not the name of a consumer', left(consumer, 200)),
            hint = 'A name has 1 to 200 bytes.';
    end if;
    insert into agui.consumer (scope, is_all, consumer, position)
    values (
        coalesce(move_consumer.scope, ''), move_consumer.scope is null, move_consumer.consumer,
        agui_internal.position_without_erased(move_consumer.after, move_consumer.scope)
    )
    on conflict on constraint consumer_name do update
    set position = excluded.position, moved_at = excluded.moved_at, moved_by = excluded.moved_by;
    if after is null then
        delete from agui_internal.consumer_thread as consumed
        where consumed.consumer_key = agui_internal.consumer_key(move_consumer.consumer, move_consumer.scope);
    end if;
end
$$;

comment on function agui.move_consumer(text, text, text) is
    'Notes that a consumer has processed the changes up to a position, of a row that agui.consume or '
    'agui.changes returned. The first call creates the consumer. A position that is further back makes '
    'it read those changes again; null: all runs and their events again. scope: the consumer of a scope '
    '(null: of all). Errors: 22023 not a position or not a name, UI024 the position is of another history of '
    'transactions, 42501 the role does not have the scope.';

revoke execute on function agui.move_consumer(text, text, text) from public;
