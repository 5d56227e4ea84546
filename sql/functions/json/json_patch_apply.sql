-- RFC 6902 without exceptions: the fold goes on when a patch fails, and a block with an exception handler cannot run in a parallel
-- query before PostgreSQL 17.
--
-- Called in the innermost loops of functions that pin the search path; to pin it here again would take longer than the work.
create or replace function agui.json_patch_apply(
    inout document jsonb,
    in patch jsonb,
    out problem text
)
language plpgsql
immutable
parallel safe
as $function$
declare
    original  constant jsonb := document;
    position  int := 0;
    operation jsonb;
    op        text;
    path      text[];
    source    text[];
    parent    jsonb;
    token     text;
    value     jsonb;
begin
    if jsonb_typeof(patch) is distinct from 'array' then
        problem := 'the patch is not a JSON array of operations';
        return;
    end if;

    while position < jsonb_array_length(patch) loop
        operation := patch -> position;
        position := position + 1;

        -- What the operation says.

        if jsonb_typeof(operation) <> 'object' then
            problem := 'it is not a JSON object';
        elsif jsonb_typeof(operation -> 'op') is distinct from 'string' then
            problem := 'its op is missing or not a string';
        elsif jsonb_typeof(operation -> 'path') is distinct from 'string' then
            problem := 'its path is missing or not a string';
        else
            op := operation ->> 'op';
            path := agui.json_pointer(operation ->> 'path');
            if path is null then
                problem := 'its path is not a JSON pointer';
            end if;
        end if;
        exit when problem is not null;

        case
            when op in ('add', 'replace', 'test') then
                value := operation -> 'value';
                if value is null then
                    problem := 'it has no value';
                end if;
            when op in ('move', 'copy') then
                if jsonb_typeof(operation -> 'from') is distinct from 'string' then
                    problem := 'its from is missing or not a string';
                else
                    source := agui.json_pointer(operation ->> 'from');
                    if source is null then
                        problem := 'its from is not a JSON pointer';
                    else
                        value := agui.json_pointer_get(document, source);
                        if value is null then
                            problem := format('nothing is at %s', operation ->> 'from');
                        end if;
                    end if;
                end if;
            when op = 'remove' then
                value := null;
            else
                problem := 'the operation is unknown';
        end case;
        exit when problem is not null;

        -- Whatever takes a value away, or looks at one, needs it to be there.

        if op in ('remove', 'replace', 'test') then
            parent := agui.json_pointer_get(document, path);
            if parent is null then
                problem := 'nothing is at the path';
            elsif op = 'test' and parent <> value then
                problem := 'the value there is another one';
            end if;
            exit when problem is not null;
        end if;

        case op
            when 'test' then
                continue;
            when 'remove' then
                document := case when path = '{}' then 'null' else document #- path end;
                continue;
            when 'replace' then
                document := case when path = '{}' then value else jsonb_set(document, path, value) end;
                continue;
            when 'move' then
                continue when source = path;
                if path[: cardinality(source)] = source then
                    problem := 'a value cannot be moved into itself';
                    exit;
                end if;
                document := document #- source;
            else
                -- add and copy take nothing away.
        end case;

        -- Add.

        if path = '{}' then
            document := value;
            continue;
        end if;

        token := path[cardinality(path)];
        parent := agui.json_pointer_get(document, path[: cardinality(path) - 1]);

        case coalesce(jsonb_typeof(parent), 'nothing')
            when 'object' then
                document := jsonb_set(document, path, value);
            when 'array' then
                if token = '-' then
                    token := jsonb_array_length(parent)::text;
                elsif token !~ '^(0|[1-9][0-9]{0,8})$' or token::int > jsonb_array_length(parent) then
                    problem := 'the array has no such position';
                    exit;
                end if;
                document := jsonb_insert(document, path[: cardinality(path) - 1] || token, value);
            when 'nothing' then
                problem := 'the parent of the path does not exist';
                exit;
            else
                problem := 'the parent of the path is neither an object nor an array';
                exit;
        end case;
    end loop;

    if problem is not null then
        document := original;
        problem := format(
            'operation %s%s%s: %s',
            position,
            coalesce(' ' || (operation ->> 'op'), ''),
            coalesce(' ' || (operation ->> 'path'), ''),
            problem
        );
    end if;
end
$function$;

comment on function agui.json_patch_apply(jsonb, jsonb) is
    'The document after an RFC 6902 patch. When an operation fails: the document as it was, and the problem.';

revoke execute on function agui.json_patch_apply(jsonb, jsonb) from public;
