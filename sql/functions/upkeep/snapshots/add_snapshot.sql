create or replace function agui_internal.add_snapshot(
    thread_key  uuid,
    run_no      int,
    through_seq bigint,
    lows        int[],
    highs       int[],
    state       text,
    print_state boolean,
    interrupts  json,
    lanes       json,
    rules       int default 1
)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform agui_internal.own_key(thread_key);
    perform agui_internal.refuse_other_rules(rules);
    insert into agui.snapshot (thread_key, run_no, through_seq, message_nos, state, interrupts, lanes, rules)
    values (
        add_snapshot.thread_key, add_snapshot.run_no, add_snapshot.through_seq,
        array(
            select int4range(part.low, part.high)
            from unnest(lows, highs) with ordinality as part (low, high, position)
            order by part.position
        ),
        case when print_state then agui_internal.json_from_jsonb(agui_internal.json_to_jsonb(add_snapshot.state)) else add_snapshot.state end::json,
        add_snapshot.interrupts, add_snapshot.lanes, add_snapshot.rules
    );
end
$$;

comment on function agui_internal.add_snapshot(uuid, int, bigint, int[], int[], text, boolean, json, json, int) is
    'Stores the snapshot of a run that was folded outside of the database. lows and highs are the '
    'ranges of its message versions, high excluded. print_state: the state was patched and is '
    'printed as the reducer in SQL does. rules is the version of its rules; programs from before there '
    'were versions give none. The caller holds the row of the thread.';

revoke execute on function agui_internal.add_snapshot(uuid, int, bigint, int[], int[], text, boolean, json, json, int) from public;
