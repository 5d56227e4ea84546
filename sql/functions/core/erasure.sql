create or replace function agui_internal.erasures_of(thread_key uuid, out erased_at timestamptz, out events bigint)
returns setof record
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
        select erasure.erased_at, erasure.events
        from agui.erasure as erasure
        where erasure.erased_key = agui_internal.erasure_key(agui_internal.visible_key(erasures_of.thread_key))
        order by erasure.erased_at;
end
$$;

comment on function agui_internal.erasures_of is
    'When a thread was erased, and how many events it had then, also if the erasure was lifted. As '
    'agui_internal.erased_at, for readers who have the name of the thread.';

create or replace function agui_internal.own_erased_keys(out low uuid, out high uuid)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select erased.low, erased.high
    from agui_internal.own_keys() as own
    cross join lateral agui_internal.erased_range(own.low, own.high) as erased
$$;

comment on function agui_internal.own_erased_keys is
    'The range of keys in agui.erasure of the threads that the calling role may change: all '
    'without row-level security; nulls: none.';

-- It returns tombstones of erased threads.
-- role: none
create or replace function agui_internal.erased_range(inout low uuid, inout high uuid)
language plpgsql
stable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    if low <> '00000000-0000-0000-0000-000000000000' or high <> 'ffffffff-ffff-ffff-ffff-ffffffffffff' then
        low := (left(agui_internal.erasure_key(low)::text, 18) || '-0000-000000000000')::uuid;
        high := (left(agui_internal.erasure_key(high)::text, 18) || '-ffff-ffffffffffff')::uuid;
    end if;
end
$$;

comment on function agui_internal.erased_range is
    'The range of keys in agui.erasure for the range of keys of all threads, or of those of a scope; '
    'nulls: none. The first half of a key there depends on the scope only. For the owner only, as '
    'agui_internal.erasure_key.';

create or replace function agui_internal.refuse_erased(thread_key uuid, subject text)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
    erased_at timestamptz := agui_internal.erased_at(thread_key);
begin
    if erased_at is not null then
        raise exception using
            errcode = 'UI014',
            message = format('%s: the thread was erased at %s', subject, erased_at),
            hint = 'Use another thread id, or call agui.lift_erasure to permit writes to this thread.';
    end if;
end
$$;

comment on function agui_internal.refuse_erased is
    'Raises UI014 if the thread was erased and the erasure was not lifted.';

create or replace function agui_internal.erased_at(thread_key uuid)
returns timestamptz
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return (
        select erasure.erased_at
        from agui.erasure as erasure
        where erasure.erased_key = agui_internal.erasure_key(agui_internal.visible_key(erased_at.thread_key))
            and erasure.allowed_at is null
    );
end
$$;

comment on function agui_internal.erased_at is
    'The time when a thread was erased, unless the erasure was lifted; null: it was not erased. '
    'Readers of threads may call it for a thread whose name they have; agui.erasure itself is for '
    'maintainers.';

-- It computes keys of erased threads.
-- role: none
create or replace function agui_internal.uid_of_thread(thread_key uuid, thread_uid uuid)
returns uuid
language sql
stable
parallel safe
-- Inlined, because a page of changes calls it for each row.
return coalesce(thread_uid, agui_internal.erasure_key(thread_key));

comment on function agui_internal.uid_of_thread is
    'The id by which copies recognize a thread once it is erased: agui.thread.thread_uid; for a thread '
    'from before there was one, its key in agui.erasure. For the owner only, as agui_internal.erasure_key.';

-- It computes keys of erased threads.
-- role: none
create or replace function agui_internal.erasure_key(thread_key uuid)
returns uuid
language plpgsql
stable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    salt bytea := (select known.salt from agui_internal.erasure_salt as known);
begin
    if salt is null then
        raise exception using
            errcode = '55000',
            message = 'agui_internal.erasure_salt is empty, so erased threads cannot be distinguished from others',
            hint = 'Restore the row together with the data of the database. If the data is lost, call agui.grant_access().';
    end if;
    return encode(
        substring(sha256(salt || substring(uuid_send(thread_key) for 8)) for 8) || substring(sha256(salt || uuid_send(thread_key)) for 8),
        'hex'
    )::uuid;
end
$$;

comment on function agui_internal.erasure_key is
    'The key of a thread in agui.erasure: its thread_key, each half hashed with the salt of this '
    'database. For the owner only, because a caller can test names with it.';
