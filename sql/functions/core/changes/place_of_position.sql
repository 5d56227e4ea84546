create or replace function agui_internal.place_of_position(named text)
returns agui_internal.change_place
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
    first_key constant uuid := '00000000-0000-0000-0000-000000000000';
    epoch     constant text := agui_internal.epoch();
    horizon   constant xid8 := pg_snapshot_xmin(pg_current_snapshot());
    part      constant text[] := regexp_match(named, '^(\d+/\d+) (all|changed) (\d{1,20}) ([0-9a-f-]{36}) (\d{1,10})$');
    place     agui_internal.change_place;
begin
    if named is null then
        return row(epoch, true, horizon, first_key, 0);
    end if;
    begin
        if part is null then
            raise data_exception;
        end if;
        place := row(part[1], part[2] = 'all', part[3]::xid8, part[4]::uuid, part[5]::int);
    exception
        when data_exception then
            raise exception using
                errcode = '22023',
                message = format('changes: "%s" is not a position', left(named, 100)),
                hint = 'Use the position of an earlier row (pgagui feed: of a line); without a position (null) it begins with all runs.';
    end;
    -- What was read is below the horizon, which only rises, unless the server lost what a reader saw:
    -- in a crash without synchronous_commit. A standby may be behind.
    if place.epoch <> epoch
        or not pg_is_in_recovery() and place.changed_in >= horizon and not place.is_in_first_reading
        or not pg_is_in_recovery() and place.changed_in > pg_snapshot_xmax(pg_current_snapshot())
    then
        raise exception using
            errcode = 'UI024',
            message = 'changes: the position is of another history of transactions: the database was restored, or failed over to a standby',
            hint = 'Begin without a position (null), which returns all runs. What you had may have changed or be gone.';
    end if;
    return place;
end
$$;

comment on function agui_internal.place_of_position(text) is
    'What a position of agui.changes says; null: the beginning. Errors: 22023 not a position, UI024 it '
    'is of another history of transactions.';

revoke execute on function agui_internal.place_of_position(text) from public;
