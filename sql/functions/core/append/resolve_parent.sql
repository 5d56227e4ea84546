create or replace function agui_internal.resolve_parent(head agui.run, thread_key uuid, parent_run_id text, subject text)
returns agui_internal.run_position
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    parent agui.run;
    place  agui_internal.run_position;
begin
    if parent_run_id is null then
        parent := head;
    elsif parent_run_id <> '' then
        -- The name is guarded because it comes from an event: a backslash is an escape, and so are
        -- characters that no run id can have. The first condition finds the run by index, the
        -- second confirms it.
        select * into parent
        from agui.run as run
        where run.thread_key = resolve_parent.thread_key
            and run.run_id = replace(parent_run_id, '\u005c', '\')
            and replace(run.run_id, '\', '\u005c') = parent_run_id;
        if not found then
            raise exception using
                errcode = 'UI003',
                message = format('%s: its parent %s is not a run of this thread', subject, agui_internal.quoted_id(parent_run_id)),
                hint = 'Append the parent first, or name no parent to continue from the head.';
        end if;
    end if;

    if parent.status = 'running' then
        raise exception using
            errcode = 'UI004',
            message = format('%s: its parent "%s" is still in progress', subject, parent.run_id),
            hint = 'The parent of a run must have ended, so that a lineage never changes. Name an earlier run as the parent.';
    end if;

    place.run_no := coalesce(head.run_no, 0) + 1;
    place.parent_no := parent.run_no;
    place.open_from := place.run_no;
    if head.status = 'running' or head.open_from < head.run_no then
        select run.run_no into place.open_from
        from agui.run as run
        where run.thread_key = resolve_parent.thread_key and run.status = 'running' and run.run_no >= head.open_from
        order by run.run_no
        limit 1;
        place.open_from := coalesce(place.open_from, place.run_no);
    end if;
    return place;
end
$$;

comment on function agui_internal.resolve_parent(agui.run, uuid, text, text) is
    'Determines the place of a new run in the tree of its thread: its number and its parent (null: '
    'the head; '''': none). head is the run begun last. UI003: the parent is unknown; UI004: the '
    'parent is in progress. The caller holds the lock of the thread.';

revoke execute on function agui_internal.resolve_parent(agui.run, uuid, text, text) from public;
