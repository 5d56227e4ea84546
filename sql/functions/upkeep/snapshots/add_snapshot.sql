create or replace function agui_internal.add_snapshot(
    thread_key  uuid,
    run_no      int,
    through_seq bigint,
    lows        int[],
    highs       int[],
    state       text,
    print_state boolean,
    interrupts  json,
    lanes       json
)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.own_key(thread_key);
    insert into agui.snapshot (thread_key, run_no, through_seq, message_nos, state, interrupts, lanes)
    values (
        add_snapshot.thread_key, add_snapshot.run_no, add_snapshot.through_seq,
        array(
            select int4range(part.low, part.high)
            from unnest(lows, highs) with ordinality as part (low, high, position)
            order by part.position
        ),
        case when print_state then agui_internal.json_from_jsonb(agui_internal.json_to_jsonb(add_snapshot.state)) else add_snapshot.state end::json,
        add_snapshot.interrupts, add_snapshot.lanes
    );
end
$$;

comment on function agui_internal.add_snapshot(uuid, int, bigint, int[], int[], text, boolean, json, json) is
    'Stores the snapshot of a run that was folded outside of the database. lows and highs are the '
    'ranges of its message versions, high excluded. print_state: the state was patched and is '
    'printed as the reducer in SQL does. The caller holds the row of the thread.';

revoke execute on function agui_internal.add_snapshot(uuid, int, bigint, int[], int[], text, boolean, json, json) from public;
