create or replace function agui.activities(
    thread_id text,
    run_id    text default null,
    at_seq    bigint default null,
    at_time   timestamptz default null,
    scope     text default ''
)
returns setof agui.activity
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
    leaf agui.run := agui_internal.find_run(thread_id, run_id, scope);
    until constant bigint := agui_internal.seq_at(leaf.thread_key, at_seq, at_time);
    fold agui_internal.fold := agui_internal.fold_at(leaf, until);
begin
    return query
    with mention as (
        select *
        from agui_internal.event_references(leaf, until, agui_internal.event_types(
            'show activity', 'patch activity', 'show or patch activity', 'start run', 'list messages'
        ))
    ),
    story as (
        select
            mention.message_id,
            min(mention.seq) as first_seq,
            -- Clients send the whole conversation with every run. A message repeated in a list is
            -- not an update.
            coalesce(max(mention.seq) filter (where mention.item = 0), min(mention.seq)) as last_seq
        from mention
        group by mention.message_id
    ),
    source_event as (
        select distinct mention.seq, mention.run_id, mention.created_at from mention
    )
    select
        activity.message_id,
        agui_internal.json_string_text((activity.body -> 'activityType')::text),
        agui_internal.json_unguard((activity.body -> 'content')::text)::json,
        begun.run_id,
        story.first_seq,
        story.last_seq,
        begun.created_at,
        updated.created_at
    from agui_internal.fold_messages(fold, array['activity']) as activity
    left join story on story.message_id = activity.message_id
    left join source_event as begun on begun.seq = story.first_seq
    left join source_event as updated on updated.seq = story.last_seq
    order by activity.position;
end
$function$;

comment on function agui.activities(text, text, bigint, timestamptz, text) is
    'Returns the activities of a conversation, in the order of the conversation, as they were '
    'after a run (null: the head) or, for a point in the past, after event at_seq of its lineage '
    'or at at_time, whichever is earlier. Reads the log of the lineage. '
    'Errors: UI001 unknown thread, UI002 unknown run, UI012 another thread has the same key, UI022 '
    'a run is in quarantine, UI023 the fold exceeds a limit.';

revoke execute on function agui.activities(text, text, bigint, timestamptz, text) from public;
