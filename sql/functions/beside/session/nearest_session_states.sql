create or replace function agui_internal.nearest_session_states(thread_key uuid, run_no int, keys text[] default null)
returns setof agui.session_state
language plpgsql
stable
parallel safe
rows 20
set search_path = pg_catalog, pg_temp
as $$
declare
    -- The current place on the lineage. The state of the thread itself, run number 0, comes before
    -- the roots of its tree.
    place   int := run_no;
    missing text[] := keys;
    next_no int;
begin
    if missing is null then
        missing := array(select known.key from agui.session_key as known where known.thread_key = nearest_session_states.thread_key);
    end if;
    loop
        return query
        select nearest.*
        from unnest(missing) as requested (key)
        cross join lateral (
            select state.*
            from agui.session_state as state
            where state.thread_key = nearest_session_states.thread_key and state.key = requested.key and state.run_no = place
            order by state.version desc
            limit 1
        ) as nearest;

        -- The remaining keys, and the youngest earlier run at which one of them was saved.
        select array_agg(requested.key), max(earlier.run_no)
        into missing, next_no
        from unnest(missing) as requested (key)
        cross join lateral (
            select state.run_no
            from agui.session_state as state
            where state.thread_key = nearest_session_states.thread_key and state.key = requested.key and state.run_no <= place
            order by state.run_no desc
            limit 1
        ) as earlier
        where earlier.run_no < place;
        exit when missing is null;

        if next_no = 0 then
            place := 0;
        else
            -- Up the lineage to that run, or past it if it is on another branch: ancestors have
            -- smaller numbers.
            with recursive ancestor as (
                select run.run_no, run.parent_no
                from agui.run as run
                where run.thread_key = nearest_session_states.thread_key and run.run_no = place
                union all
                select parent.run_no, parent.parent_no
                from ancestor
                join agui.run as parent
                    on parent.thread_key = nearest_session_states.thread_key
                        and parent.run_no = ancestor.parent_no
                        and parent.run_no < ancestor.run_no
                where ancestor.run_no > next_no
            )
            select coalesce(max(ancestor.run_no) filter (where ancestor.run_no <= next_no), 0)
            into place
            from ancestor;
        end if;
    end loop;
end
$$;

comment on function agui_internal.nearest_session_states(uuid, int, text[]) is
    'The session state of a run, for some keys or (null) all: for each key the version saved last '
    'at the nearest run of its lineage, else for the thread (run number 0). Includes removals, '
    'which have a null document. Reads only what it returns and the part of the lineage in '
    'between.';

revoke execute on function agui_internal.nearest_session_states(uuid, int, text[]) from public;
