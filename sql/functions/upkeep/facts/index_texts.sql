create or replace function agui_internal.index_texts(news agui_internal.run_news[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
-- Words of more than 2 KB are left out, with a notice for each.
set client_min_messages = warning
as $$
declare
    language regconfig;
begin
    select search.language::regconfig into language from agui_internal.search as search;
    if not found then
        return;
    end if;
    insert into agui.message_text as kept (thread_key, print, run_no, seq, said_at, role, message_id, text, words)
    select
        said.*,
        to_tsvector(language, said.text) || array_to_tsvector(array[
            agui_internal.word_of('scope', agui_internal.scope_key(said.thread_key)::text), agui_internal.word_of('role', said.role)
        ])
    from agui_internal.texts_of_runs(news) as said
    -- Most texts are kept already, for each input repeats those before it.
    where not exists (
        select
        from agui.message_text as known
        where known.thread_key = said.thread_key and known.print = said.print and known.run_no <= said.run_no
        offset 0
    )
    on conflict (thread_key, print) do update
    set run_no = excluded.run_no, seq = excluded.seq, said_at = excluded.said_at;
end
$$;

comment on function agui_internal.index_texts(agui_internal.run_news[]) is
    'Stores in agui.message_text what runs bring and their threads do not have, or have of a later run, if search is on.';

revoke execute on function agui_internal.index_texts(agui_internal.run_news[]) from public;
