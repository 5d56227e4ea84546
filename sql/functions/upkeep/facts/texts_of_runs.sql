create or replace function agui_internal.texts_of_runs(news agui_internal.run_news[])
returns setof agui_internal.said_text
language plpgsql
immutable
parallel safe
rows 1000
set search_path = pg_catalog, pg_temp
set jit = off
as $$
begin
    return query
    select distinct on (found.thread_key, found.print)
        found.thread_key, found.print, found.run_no, found.seq, found.at, found.role, found.message_id, found.text
    from (
        select said.*, hashtextextended(concat_ws(chr(1), said.role, coalesce(said.message_id, ''), said.text), 0) as print
        from unnest(news) as said
        where said.role is not null and said.text is not null
    ) as found
    order by found.thread_key, found.print, found.run_no, found.seq;
end
$$;

comment on function agui_internal.texts_of_runs(agui_internal.run_news[]) is
    'The texts of the messages that runs bring (agui_internal.news_of_runs): each once in its thread, for the first '
    'of the runs that has it. What the system or the developer says is left out: each thread has the same.';

revoke execute on function agui_internal.texts_of_runs(agui_internal.run_news[]) from public;
