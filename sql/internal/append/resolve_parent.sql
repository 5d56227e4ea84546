create or replace function agui_internal.resolve_parent(thread_key uuid, parent_run_id text, subject text)
returns agui_internal.run_position
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    head   agui.run;
    parent agui.run;
    place  agui_internal.run_position;
begin
    select * into head
    from agui.run as run
    where run.thread_key = resolve_parent.thread_key
    order by run.run_no desc
    limit 1;

    if parent_run_id is null then
        parent := head;
    elsif parent_run_id <> '' then
        -- The name is guarded, as it comes from an event: a backslash is written as an escape, and so are characters that no run id
        -- can have. The first condition finds the run by index, the second makes sure.
        select * into parent
        from agui.run as run
        where run.thread_key = resolve_parent.thread_key
            and run.run_id = replace(parent_run_id, '\u005c', '\')
            and replace(run.run_id, '\', '\u005c') = parent_run_id;
        if not found then
            raise exception using
                errcode = 'UI003',
                message = format('%s: its parent %s is not a run of this thread', subject, agui_internal.quoted_id(parent_run_id)),
                hint = 'Append the parent first, or name none to follow the run begun last.';
        end if;
    end if;

    if parent.status = 'running' then
        raise exception using
            errcode = 'UI004',
            message = format('%s: its parent "%s" is still in progress', subject, parent.run_id),
            hint = 'A run goes on from one that has ended, so that its lineage never changes. Name an earlier run as the parent.';
    end if;

    place.run_no := coalesce(head.run_no, 0) + 1;
    place.parent_no := parent.run_no;
    return place;
end
$$;

comment on function agui_internal.resolve_parent(uuid, text, text) is
    'Finds a new run''s place in its thread''s tree: its number, and its parent (null: the head; '''': none). UI003: the parent is '
    'unknown, UI004: it is in progress. The caller holds the thread''s lock.';

revoke execute on function agui_internal.resolve_parent(uuid, text, text) from public;
