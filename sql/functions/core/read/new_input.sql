create or replace function agui_internal.new_input(
    thread_key uuid,
    run_no     int,
    known_ids  text[],
    out input          json,
    out left_out_bytes bigint,
    out new_ids        text[]
)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_nestloop = off  -- the ids are looked up in a hash table
set jit = off
as $$
declare
    stored record;
    listed record;  -- the messages
begin
    select of_run.input, of_run.skeleton, of_run.sections, section.separator, section.part_nos into stored
    from agui.run_input as of_run
    left join lateral jsonb_to_recordset(of_run.sections) as section (kind text, separator text, part_nos int4range[])
        on section.kind = 'message'
    where of_run.thread_key = new_input.thread_key and of_run.run_no = new_input.run_no;
    if stored.part_nos is null then
        input := coalesce(stored.input, agui_internal.joined_input(thread_key, stored.skeleton, stored.sections)::json);
        return;
    end if;
    select
        array_agg(part.part_no order by part.place, part.part_no) filter (where known.id is null) as new_nos,
        array_agg(part.message_id) filter (where known.id is null and part.message_id is not null) as new_ids,
        coalesce(sum(part.bytes) filter (where known.id is not null), 0)
            + ((count(*) - 1) - greatest(count(*) filter (where known.id is null) - 1, 0)) * octet_length(stored.separator) as left_out_bytes
    into listed
    from agui_internal.parts_in(thread_key, 'message', stored.part_nos) as part
    -- Guarded text with a backslash is ambiguous.
    left join (select distinct given.id from unnest(known_ids) as given (id) where strpos(given.id, '\') = 0) as known
        on known.id = part.message_id;
    left_out_bytes := listed.left_out_bytes;
    new_ids := listed.new_ids;
    input := agui_internal.joined_input(
        thread_key, stored.skeleton, agui_internal.with_messages(stored.sections, agui_internal.ranges_of(listed.new_nos))
    )::json;
end
$$;

comment on function agui_internal.new_input(uuid, int, text[]) is
    'What a fold takes from the input beside the events of a run: the input without the messages that '
    'have one of the known ids, because a conversation that has them ignores them. left_out_bytes is '
    'their size, as folds count it, with what separates them; new_ids are the ids of the others.';

revoke execute on function agui_internal.new_input(uuid, int, text[]) from public;
