create or replace function agui.claim_run(
    thread_id text,
    run_id    text,
    claimant  text,
    input     json default null,
    parent_run_id text default null,
    parallel  boolean default false,
    scope     text default ''
)
returns agui.run_claim
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    key        constant uuid := agui_internal.own_thread_key(scope, thread_id);
    subject    constant text := format('run "%s" of thread "%s"', run_id, thread_id);
    input_hash constant bytea := sha256(convert_to(input::text, 'UTF8'));
    head       agui.run;
    existing   agui.run;
    place      agui_internal.run_position;
    claim      agui_internal.claim;
begin
    perform agui_internal.inspect_ids(thread_id, run_id, scope, 'agui.claim_run');
    if claimant is null or claimant = '' then
        raise exception using
            errcode = 'UI008',
            message = format('%s: the claimant must not be empty', subject),
            hint = 'Pass a random text, and the same one when the call is repeated.';
    end if;
    if octet_length(claimant) > 1024 then
        raise exception using
            errcode = 'UI011',
            message = format('%s: the claimant is limited to 1,024 bytes', subject);
    end if;
    if input is not null then
        perform agui_internal.inspect_input(input, '[]', subject);
    end if;
    parallel := coalesce(parallel, false);

    perform agui_internal.lock_thread(key);
    perform agui_internal.checked_thread_key(thread_id, scope);

    select * into existing
    from agui.run as run
    where run.thread_key = key and run.run_id = claim_run.run_id;
    if found then
        if not agui_internal.has_input(existing, input) then
            raise exception using
                errcode = 'UI007',
                message = format('%s exists already (it is %s), with another input', subject, existing.status),
                hint = 'Use a new runId for a new run.';
        end if;
        raise exception using
            errcode = 'UI009',
            message = format('%s exists already (it is %s)', subject, existing.status),
            hint = 'Follow that run, or use a new runId for a new run.';
    end if;

    claim := agui_internal.find_claim(key, run_id, parallel, subject);
    if claim.run_id is not null then
        if claim.input_hash is distinct from input_hash
            or claim.claimant = claimant and (
                claim.parallel <> parallel or parent_run_id <> coalesce(claim.parent_run_id, '')
            )
        then
            raise exception using
                errcode = 'UI007',
                message = case
                    when claim.claimant <> claimant then format('%s is claimed with another input', subject)
                    else format('%s is claimed already, and the repeated call has another input, parent or parallel', subject)
                end,
                hint = 'Use a new runId for a new run. A repeated call must have the same arguments.';
        end if;
        if claim.claimant <> claimant then
            raise exception using
                errcode = 'UI009',
                message = format('%s is claimed already and will begin', subject),
                detail = format('Without a call of agui.keep_alive its lease ends at %s.', agui_internal.claim_alive_until(claim.seen_at)),
                hint = 'Follow that run, or use a new runId for a new run.';
        end if;
    else
        loop
            select * into head
            from agui.run as run
            where run.thread_key = key
            order by run.run_no desc
            limit 1;
            -- A closed run may be the head.
            exit when parallel or not agui_internal.close_stale_runs(head, subject);
        end loop;
        if head.run_no is null then
            perform agui_internal.refuse_erased(key, subject);
            perform agui_internal.refuse_scope_collision(scope);
        end if;
        place := agui_internal.resolve_parent(head, key, replace(parent_run_id, '\', '\u005c'), subject);
        insert into agui_internal.claim (thread_key, run_id, parent_run_id, input_hash, parallel, claimant, claimed_at, seen_at)
        values (
            key, claim_run.run_id,
            (select parent.run_id from agui.run as parent where parent.thread_key = key and parent.run_no = place.parent_no),
            input_hash, claim_run.parallel, claim_run.claimant, clock_timestamp(), clock_timestamp()
        )
        returning * into claim;
    end if;
    return row(claim.run_id, claim.parent_run_id, claim.parallel, claim.claimed_at, agui_internal.claim_alive_until(claim.seen_at));
end
$$;

comment on function agui.claim_run(text, text, text, json, text, boolean, text) is
    'Takes the place of a run that will begin, for a writer that calls an agent and gets the first '
    'event later. Until then no other run begins in the thread, unless it or the claim is '
    'parallel. Determines the parent; parent_run_id is as in agui.append (null: the head, '''': '
    'none). The call of agui.append that begins the run ends the claim, and the run gets the '
    'parent of the claim unless that call gives one. claimant is a random text of the process: a '
    'call whose answer was lost can be repeated with the same one. The lease of a claim is the '
    'setting heartbeat_lease, and agui.keep_alive renews it. After the lease the claim counts as '
    'none. A claim is no run: agui.claims alone shows it. If the run id is in use, the errors tell '
    'a repeated request, which can follow the run (UI009), from another one (UI007). '
    'Errors: UI003 unknown parent, UI004 the parent is in progress, UI006 another run is in '
    'progress or claimed, UI007 the run id is in use with another input, UI008 an empty id or '
    'claimant, or an input that is not an object, UI009 the run id is in use with the same input, '
    'UI011 a limit is exceeded, UI012 another thread has the same key, UI014 the thread was '
    'erased.';

revoke execute on function agui.claim_run(text, text, text, json, text, boolean, text) from public;
