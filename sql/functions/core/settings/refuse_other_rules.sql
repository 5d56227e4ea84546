create or replace function agui_internal.refuse_other_rules(rules int)
returns void
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    if rules is distinct from agui_internal.rules() then
        raise exception using
            errcode = '0A000',
            message = format('this program folds events by rules of version %s, the database by version %s', coalesce(rules, 1), agui_internal.rules()),
            hint = 'Replace the program by one of the version that has upgraded the database (pgagui doctor names it).';
    end if;
end
$$;

comment on function agui_internal.refuse_other_rules(int) is
    'Refuses a fold of a program that follows other rules than the database (0A000): what it makes of '
    'the same events may be something else.';

revoke execute on function agui_internal.refuse_other_rules(int) from public;
