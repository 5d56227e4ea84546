create or replace procedure agui.grant_access()
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    routine record;
begin
    if (select count(*) from pg_roles where rolname in ('agui_reader', 'agui_writer', 'agui_maintainer')) < 3 then
        raise exception using
            errcode = 'undefined_object',
            message = 'the roles agui_reader, agui_writer and agui_maintainer do not all exist',
            hint = 'create role agui_reader nologin; create role agui_writer nologin in role agui_reader; '
                'create role agui_maintainer nologin in role agui_writer; then call agui.grant_access() again.';
    end if;

    grant usage on schema agui, agui_internal to agui_reader, agui_writer, agui_maintainer;
    grant select on agui.thread, agui.run, agui.batch, agui.run_input, agui.thread_activity, agui.message, agui.snapshot, agui.session_key,
        agui.session_state, agui.checkpoint, agui.erasure, agui.event to agui_reader, agui_writer;
    grant insert on agui.thread, agui.run, agui.batch, agui.run_input, agui.thread_activity, agui.message, agui.snapshot, agui.session_key, agui.session_state, agui.checkpoint
        to agui_writer;
    grant update (status, last_seq, ended_at, seen_at, stop_requested_at, stop_reason, cut_off_reason, n, log_bytes, repacked_at)
        on agui.run to agui_writer;
    grant update (through_seq, message_nos, state, interrupts, lanes, created_at) on agui.snapshot to agui_writer;
    grant update (last_version, saved_at) on agui.session_key to agui_writer;
    grant delete on agui.message, agui.snapshot, agui.session_state to agui_writer;
    grant update on agui.thread_activity to agui_writer;
    -- Nothing changes a thread's row; locking it takes the right to.
    grant update (created_at) on agui.thread to agui_writer;

    grant usage on schema agui, agui_internal to pg_monitor;
    grant select on agui.stats, agui.lag to agui_reader, agui_writer, pg_monitor;
    grant execute on function agui_internal.lease(), agui_internal.repack_after() to pg_monitor;  -- which agui.lag calls

    -- To repack and to erase. Tables decide who may: the functions for it are executable by every writer, and of no use to it.
    grant delete on agui.thread, agui.run, agui.batch, agui.run_input, agui.thread_activity, agui.session_key, agui.checkpoint to agui_maintainer;
    grant update (recorded_at, n, events, earlier_us) on agui.batch to agui_maintainer;
    grant insert, update (allowed_at, allowed_by, scope, thread_id) on agui.erasure to agui_maintainer;

    -- Who imports says when things happened.
    grant execute on function agui.import_events(text, text, json, bigint, json, text, boolean, boolean, text) to agui_maintainer;

    -- What cannot write is for readers, all the rest for writers.
    for routine in
        select pg_proc.oid::regprocedure as signature, pg_proc.provolatile <> 'v' as only_reads
        from pg_proc
        where pg_proc.pronamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace)
            and pg_proc.prorettype <> 'trigger'::regtype
            and pg_proc.proname not in ('grant_access', 'import_events')
    loop
        execute format('grant execute on routine %s to agui_writer', routine.signature);
        if routine.only_reads then
            execute format('grant execute on routine %s to agui_reader', routine.signature);
        end if;
    end loop;
end
$$;

comment on procedure agui.grant_access() is
    'Grants what the roles agui_reader, agui_writer and agui_maintainer need. The migrations call it; call it once more after making the roles by hand.';

revoke execute on procedure agui.grant_access() from public;
