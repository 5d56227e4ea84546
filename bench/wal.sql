-- How many bytes of WAL an event takes, by how many a call brings. In a database without other writers:
--     psql "$DATABASE_URL" -X -q -f bench/wal.sql
-- It leaves the threads wal/1, wal/10 and wal/100, so it runs once in a database.
\set ON_ERROR_STOP 1
set statement_timeout = 0;

-- Tokens of six characters, in calls that commit each.
create procedure pg_temp.write(events int) language plpgsql as $$
declare
    thread constant text := 'wal/' || events;
begin
    perform agui.append(thread, 'run', '[{"type":"RUN_STARTED"},{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}]');
    for i in 1 .. 10000 / events loop
        perform agui.append(thread, 'run', (
            select json_agg(json_build_object('type', 'TEXT_MESSAGE_CONTENT', 'messageId', 'm', 'delta', left(md5(i || ' ' || n), 6)))
            from generate_series(1, events) as n
        ));
        commit;
    end loop;
    perform agui.append(thread, 'run', '[{"type":"TEXT_MESSAGE_END","messageId":"m"},{"type":"RUN_FINISHED"}]');
end
$$;

checkpoint;
select pg_current_wal_insert_lsn() as start \gset
call pg_temp.write(1);
select pg_current_wal_insert_lsn() as one \gset
call pg_temp.write(10);
select pg_current_wal_insert_lsn() as ten \gset
call pg_temp.write(100);
select pg_current_wal_insert_lsn() as hundred \gset
call agui.compact();
call agui.repack(older_than => '0');
select pg_current_wal_insert_lsn() as jobs \gset
select
    round((:'one'::pg_lsn - :'start'::pg_lsn) / 10000) as "1 a call",
    round((:'ten'::pg_lsn - :'one'::pg_lsn) / 10000) as "10 a call",
    round((:'hundred'::pg_lsn - :'ten'::pg_lsn) / 10000) as "100 a call",
    round((:'jobs'::pg_lsn - :'hundred'::pg_lsn) / 30000) as "jobs, later";
