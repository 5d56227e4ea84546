-- Lists of threads: how agui.threads returns a page at the cost of that page, and what keeps lists
-- up to date.
--
--   agui.thread_activity     one row a thread: active_at, when a run last began or ended, and what
--                            agui.set_thread sets
--   a page                   a range of the index (scope, active_at, thread_key), read backward,
--                            then two look-ups and the runs of each thread on it (show_threads)
--   a cursor                 (active_at, half of the key): a place and not a thread, so it stays
--                            valid when its thread moves or is erased
--
-- - Head, status and runs come from agui.run. Nothing of them is stored twice.
-- - An append moves its thread when a run begins or ends, under the lock of the thread; tokens do
--   not touch the row. Versions that a transaction leaves behind cannot be pruned before it
--   commits. So one with many runs moves it eight times, and a deferred trigger once more
--   (settle_activity).
-- - agui.thread_activity is a table of its own, because compactors hold the row of agui.thread
--   while they fold. They fill in a missing title last, unless the row is locked (fill_title). So
--   no append waits for a compactor.
-- - The title, if none is set, is the beginning of the first user message: of the input of the
--   first run that brings one, or of the events of the call that begins a run, or of what
--   compaction finds.
-- - Archived threads have an index of their own. Both are ascending: new entries go to the end of
--   the range of their scope, where PostgreSQL splits pages so that the left one stays full.
-- - There is no index by agent or metadata, which each beginning and end would write. So a search
--   examines at most 10,000 threads and its page may be empty: agui.thread_page says how far back
--   it went.
-- - agui.threads turns sorting off. The planner has no information about the limit, and would sort
--   a large scope.
-- - A pass over the pages shows no thread twice, and ends. A thread that becomes active moves above
--   the cursor. An append takes its time before it commits, so one in a long transaction may appear
--   below.
--
-- agui.verify finds a thread that is missing or behind its runs; agui.rebuild_snapshots repairs it.

-- role: worker
create or replace function agui_internal.fill_title(thread_key uuid)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    max_messages constant int := 100;
    body    json;
    derived text;
begin
    perform agui_internal.own_key(thread_key);
    perform
    from agui.thread_activity as activity
    where activity.thread_key = fill_title.thread_key and activity.derived_title is null;
    if not found then
        return;
    end if;

    for body in
        select message.body
        from (
            select stored.body, stored.role
            from agui.message as stored
            where stored.thread_key = fill_title.thread_key
            order by stored.message_no
            limit max_messages
        ) as message
        where message.role = 'user' or message.role is null
    loop
        derived := agui_internal.title_of_message(agui_internal.json_guarded(body));
        exit when derived is not null;
    end loop;
    if derived is null then
        return;
    end if;

    -- A run that begins or ends changes this row: neither waits for the other.
    update agui.thread_activity as activity
    set derived_title = derived
    where activity.thread_key = (
        select untitled.thread_key
        from agui.thread_activity as untitled
        where untitled.thread_key = fill_title.thread_key and untitled.derived_title is null
        for no key update skip locked
    );
end
$$;

comment on function agui_internal.fill_title is
    'Sets the title of a thread without a title to that of its first user message, searched in the '
    'first 100 message versions of its snapshots. Compactors call it in their last statement '
    'before the commit, because appends to the thread wait for the row that it locks.';

create or replace function agui_internal.note_run_begun(
    thread_key uuid,
    active_at  timestamptz,
    events     json,
    input      json default null
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    -- null: the thread has no row yet
    is_titled constant boolean := agui_internal.note_activity(thread_key, active_at);
    derived   text;
begin
    if is_titled then
        return;
    end if;

    -- Parse the input only now, because it is expensive.
    derived := coalesce(agui_internal.title_of_input(events, input), agui_internal.title_of_events(events));
    if is_titled is null or derived is not null then
        insert into agui.thread_activity (thread_key, scope_key, active_at, derived_title)
        values (
            note_run_begun.thread_key, agui_internal.scope_key(note_run_begun.thread_key),
            note_run_begun.active_at, derived
        )
        on conflict on constraint thread_activity_pkey do update
        set active_at = excluded.active_at,
            derived_title = excluded.derived_title;
    end if;
end
$$;

comment on function agui_internal.note_run_begun is
    'Moves a thread to its place in lists when a run of it begins, given the events that begin it '
    'and the input stored beside them. Derives the title of the thread from the input or the events while it has '
    'none. The caller holds the lock of the thread and has created its row.';

-- Each update leaves an old version of the row with its index entries, which cannot be pruned
-- before the transaction commits, and every look-up of the row passes them. So a transaction
-- updates it max_writes times, and a last time when it commits.
create or replace function agui_internal.note_activity(thread_key uuid, active_at timestamptz)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    max_writes constant int := 8;  -- the same number as in the trigger
    transaction constant xid8 := pg_current_xact_id();
    is_titled boolean;
begin
    update agui.thread_activity as activity
    set active_at = note_activity.active_at,
        written_in = transaction,
        writes = case when activity.written_in = transaction then activity.writes + 1 else 1 end
    where activity.thread_key = note_activity.thread_key
        and (activity.written_in = transaction and activity.writes = max_writes) is not true
    returning activity.derived_title is not null into is_titled;
    if not found then
        select activity.derived_title is not null into is_titled
        from agui.thread_activity as activity
        where activity.thread_key = note_activity.thread_key;
    end if;
    return is_titled;
end
$$;

comment on function agui_internal.note_activity is
    'Moves a thread to its place in lists when a run of it has begun or ended. Returns whether a '
    'title was derived for it; null: it is in no list yet. The caller holds the lock of the '
    'thread.';

create or replace function agui_internal.title_of_input(events json, input json)
returns text
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    bytes_of_large constant int := 8 * 1024 * 1024;
    first_event json;
    messages    json;
    message     json;
    title       text;
begin
    -- To read a large input takes a multiple of its size. Compaction derives the title later.
    if agui_internal.json_octets(events) + coalesce(agui_internal.json_octets(input), 0) > bytes_of_large then
        return null;
    end if;
    messages := agui_internal.json_guarded(input) -> 'messages';
    -- The input of RUN_STARTED takes precedence over one beside the events.
    if position('"input"'::bytea in agui_internal.json_bytes(events)) > 0 then
        first_event := agui_internal.json_guarded(events) -> 0;
        if first_event ->> 'type' = 'RUN_STARTED' and json_typeof(first_event -> 'input') = 'object' then
            messages := first_event -> 'input' -> 'messages';
        end if;
    end if;
    if json_typeof(messages) is distinct from 'array' then
        return null;
    end if;
    for message in
        select element.value from json_array_elements(messages) as element (value)
    loop
        title := agui_internal.title_of_message(message);
        exit when title is not null;
    end loop;
    return title;
end
$$;

comment on function agui_internal.title_of_input is
    'The title that the input of a run gives its thread: that of its first user message with text. '
    'The input is that of the RUN_STARTED with which events begin, else the one beside them. Null: '
    'there is none, or the input is larger than 8 MB.';

create or replace function agui_internal.title_of_events(events json)
returns text
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    bytes_of_large constant int := 256 * 1024;
    lists constant text[] := agui_internal.event_types('list messages');
    texts constant text[] := agui_internal.event_types('start text', 'continue text', 'chunk text');
    title text;
begin
    if agui_internal.json_octets(events) > bytes_of_large or position('"user"'::bytea in agui_internal.json_bytes(events)) = 0 then
        return null;
    end if;
    select agui_internal.title_of_message(said.message) into title
    from (
        select event.position, message.value as message
        from json_array_elements(agui_internal.json_guarded(events)) with ordinality as event (value, position)
        cross join lateral json_array_elements(case
            when event.value ->> 'type' = any (lists) and json_typeof(event.value -> 'messages') = 'array' then event.value -> 'messages'
            else '[]'
        end) as message (value)
        union all
        -- A message of text that the user said.
        select min(event.position), json_build_object('role', 'user', 'content', string_agg(event.value ->> 'delta', '' order by event.position))
        from json_array_elements(agui_internal.json_guarded(events)) with ordinality as event (value, position)
        where event.value ->> 'type' = any (texts)
        group by event.value ->> 'messageId'
        having bool_or(event.value ->> 'role' = 'user')
    ) as said
    where agui_internal.title_of_message(said.message) is not null
    order by said.position
    limit 1;
    return title;
end
$$;

comment on function agui_internal.title_of_events is
    'The title that events of a run give its thread: that of the first message of the user in a '
    'MESSAGES_SNAPSHOT or a text message. Null: there is none, or the events are larger than 256 KB.';

create or replace function agui_internal.title_of_message(message json)
returns text
language plpgsql
immutable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    max_length constant int := 200;
    -- Removing white space may shorten the text: this is more than enough without reading all of a
    -- long text.
    looked_at  constant int := 10 * max_length;
    content    json := case
        when json_typeof(message) = 'string' then message
        when json_typeof(message) = 'object' and message ->> 'role' = 'user' then message -> 'content'
    end;
    title      text := case json_typeof(content)
        when 'string' then left(content #>> '{}', looked_at)
        when 'array' then (
            select string_agg(left(part.value ->> 'text', looked_at), ' ' order by part.position)
            from json_array_elements(content) with ordinality as part (value, position)
            where json_typeof(part.value) = 'object' and json_typeof(part.value -> 'text') = 'string'
        )
    end;
begin
    title := btrim(regexp_replace(agui_internal.readable(title), '\s+', ' ', 'g'));
    if coalesce(title, '') = '' and json_typeof(content) = 'array' then
        -- Files without a word: their names, or what they are.
        select string_agg(coalesce(nullif(btrim(regexp_replace(agui_internal.readable(left(file.name, looked_at)), '\s+', ' ', 'g')), ''), '(' || file.kind || ')'),
            ', ' order by file.position)
        into title
        from (
            select
                part.position,
                coalesce(part.value ->> 'filename', part.value -> 'metadata' ->> 'filename') as name,
                case
                    when part.value ->> 'type' in ('image', 'audio', 'video', 'document') then part.value ->> 'type'
                    when part.value ->> 'type' is distinct from 'binary' then null
                    when part.value ->> 'mimeType' ~ '^(image|audio|video)/' then split_part(part.value ->> 'mimeType', '/', 1)
                    else 'document'
                end as kind
            from json_array_elements(content) with ordinality as part (value, position)
            where json_typeof(part.value) = 'object'
        ) as file
        where file.kind is not null;
    end if;
    return nullif(rtrim(left(title, max_length)), '');
end
$$;

comment on function agui_internal.title_of_message is
    'The title that a message (guarded JSON) gives its thread: the first 200 characters of the '
    'text of the user, on one line; of a message that has only files, their names or kinds. Null if it '
    'is not a user message or has neither.';

create or replace function agui_internal.rebuild_activity(thread_key uuid)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
    insert into agui.thread_activity (thread_key, scope_key, active_at)
    select thread.thread_key, agui_internal.scope_key(thread.thread_key), agui_internal.active_at(thread)
    from agui.thread as thread
    where thread.thread_key = rebuild_activity.thread_key
    on conflict on constraint thread_activity_pkey do update
    set scope_key = excluded.scope_key,
        active_at = excluded.active_at
$$;

comment on function agui_internal.rebuild_activity is
    'Creates the row of a thread in agui.thread_activity, or repairs its derived columns. What '
    'agui.set_thread has set is kept.';

create or replace function agui_internal.scope_key(thread_key uuid)
returns bigint
language sql
immutable
strict
parallel safe
return ('x' || left(replace(thread_key::text, '-', ''), 16))::bit(64)::bigint;

comment on function agui_internal.scope_key is
    'The first 64 bits of a thread key as a number: the hash of its scope, which the indexes of '
    'agui.thread_activity use.';

create or replace function agui_internal.active_at(thread agui.thread)
returns timestamptz
language sql
stable
parallel safe
return coalesce(
    (
        select greatest(max(run.started_at), max(run.ended_at))
        from agui.run as run
        where run.thread_key = thread.thread_key
    ),
    thread.created_at
);

comment on function agui_internal.active_at is
    'The correct value of agui.thread_activity.active_at: when a run of the thread last began or '
    'ended; without runs, when the thread was created.';

create or replace function agui_internal.run_cursor(ended_at timestamptz, thread_key uuid, run_no int)
returns text
language sql
stable  -- as agui_internal.thread_cursor is
parallel safe
return agui_internal.thread_cursor(ended_at, thread_key) || lpad(to_hex(run_no), 8, '0');

comment on function agui_internal.run_cursor is
    'The position of an ended run in the lists of the runs of its scope, as text: 40 hexadecimal '
    'digits.';

create or replace function agui_internal.settle_activity()
returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    update agui.thread_activity as activity
    set active_at = greatest(activity.active_at, (
            select batch.recorded_at
            from agui.batch as batch
            where batch.thread_key = new.thread_key
            order by batch.first_seq desc
            limit 1
        )),
        written_in = null,
        writes = 0
    where activity.thread_key = new.thread_key and activity.written_in = new.written_in;
    return null;
end
$$;

comment on function agui_internal.settle_activity is
    'Trigger: sets the place of a thread in lists to the time of its last event when a transaction '
    'commits that began and ended many runs of it and therefore skipped some updates '
    '(agui_internal.note_activity).';

create constraint trigger settle_activity
    after update on agui.thread_activity
    deferrable initially deferred
    for each row
    when (old.writes = 7 and new.writes = 8)
    execute function agui_internal.settle_activity();

create or replace function agui_internal.show_threads(activities agui.thread_activity[], scope text)
returns setof agui.thread_row
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
-- Planned once: a plan for each call would take longer than the call.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
begin
    -- Each part is a subquery that cannot be flattened, so that the plan is a few look-ups for each
    -- thread, whatever the planner expects.
    return query
    select
        thread.thread_id,
        coalesce(activity.title, activity.derived_title),
        activity.agent,
        activity.metadata,
        activity.archived,
        thread.created_at,
        activity.active_at,
        head.run_id,
        head.status,
        case head.status when 'running' then agui_internal.is_stale(head.run) else false end,
        coalesce(head.run_no, 0),
        coalesce(head.run_no, 0) - tree.parents,
        agui_internal.thread_cursor(activity.active_at, activity.thread_key),
        (why.ended).error_code,
        (why.ended).error_message,
        (why.ended).stop_reason,
        (why.ended).cut_off_reason
    from unnest(show_threads.activities) as activity
    cross join lateral (
        -- Two scopes may have the same scope_key.
        select stored.*
        from agui.thread as stored
        where stored.thread_key = activity.thread_key and stored.scope = show_threads.scope
        offset 0
    ) as thread
    left join lateral (
        -- The whole row only where it is needed.
        select stored.run_id, stored.run_no, stored.status, case when stored.status not in ('finished', 'interrupted') then stored end as run
        from agui.run as stored
        where stored.thread_key = activity.thread_key
        order by stored.run_no desc
        limit 1
    ) as head on true
    left join lateral (
        select agui_internal.why_ended(head.run, 1000) as ended
        where head.status not in ('running', 'finished', 'interrupted')
        offset 0
    ) as why on true
    cross join lateral (
        -- By run_children, which has nothing else.
        select count(distinct run.parent_no)::int as parents
        from agui.run as run
        where run.thread_key = activity.thread_key and run.parent_no is not null
    ) as tree;
end
$$;

comment on function agui_internal.show_threads is
    'Converts rows to threads as agui.threads shows them, in the order of the rows; threads of '
    'another scope are left out. Reads the runs of each thread, to count branches.';

create or replace function agui_internal.thread_cursor(active_at timestamptz, thread_key uuid)
returns text
language sql
stable  -- as extract is; so it is inlined
parallel safe
-- The half of the key that is the scope's is left out: the caller of agui.threads names the scope.
return lpad(to_hex((extract(epoch from active_at) * 1000000)::bigint), 16, '0') || right(replace(thread_key::text, '-', ''), 16);

comment on function agui_internal.thread_cursor is
    'The place of a thread in a list, as the text that agui.threads takes as cursor: microseconds '
    'and half of the key, 32 digits.';
