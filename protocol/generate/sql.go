package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/pgagui/pgagui/protocol"
)

// sets returns the sets of types that SQL asks for, by what they have in common.
func sets(l *protocol.List) (words []string, types map[string][]string) {
	types = map[string][]string{}
	add := func(word, name string) {
		if types[word] == nil {
			words = append(words, word)
		}
		types[word] = append(types[word], name)
	}
	for _, t := range l.Types {
		if t.Does != "" {
			add(strings.TrimSuffix(t.Does+" "+t.Part, " "), t.Name)
		}
		if t.Brings != nil {
			add("brings "+t.Brings[0], t.Name)
		}
		if !t.IsFolded() {
			continue
		}
		if t.Closes != "" {
			add("closes "+t.Closes, t.Name)
		}
		if t.Changes == nil {
			add("changes nothing", t.Name)
		} else {
			add("changes something", t.Name)
		}
	}
	slices.Sort(words)
	return words, types
}

// sqlFile makes a file of SQL functions.
func sqlFile(functions ...func(*bytes.Buffer, *protocol.List)) func(*protocol.List) ([]byte, error) {
	return func(l *protocol.List) ([]byte, error) {
		var w bytes.Buffer
		fmt.Fprintf(&w, "-- %s\n", notice)
		for _, write := range functions {
			w.WriteByte('\n')
			write(&w, l)
		}
		return w.Bytes(), nil
	}
}

// eventTypes writes agui_internal.event_types.
func eventTypes(w *bytes.Buffer, l *protocol.List) {
	fmt.Fprint(w, `create or replace function agui_internal.event_types(variadic those text[])
returns text[]
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
    that  text;
    types text[] := '{}';
begin
    foreach that in array those loop
        case that
`)
	words, types := sets(l)
	for _, word := range words {
		fmt.Fprintf(w, "            when '%s' then types := types || array['%s'];\n", word, strings.Join(types[word], "', '"))
	}
	fmt.Fprint(w, `        end case;
    end loop;
    return types;
end
$$;

comment on function agui_internal.event_types is
    'The event types that do what the words say: ''start text'', ''add result'', ''brings messageId'', '
    '''closes own''. A call with constants costs nothing: the planner replaces it by an array.';
`)
}

// eventRoles writes agui_internal.event_roles.
func eventRoles(w *bytes.Buffer, l *protocol.List) {
	fmt.Fprint(w, `create or replace function agui_internal.event_roles(
    out type text,
    out does text,
    out part text,
    out part_no int,
    out opens text,
    out continues text,
    out closes text,
    out fails text,
    out chunks text,
    out named_by text
)
returns setof record
language plpgsql
immutable
parallel safe
rows 40
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    values
`)
	var rows []string
	for i, p := range l.Parts {
		for _, does := range []struct {
			does  string
			types []string
		}{{"start", p.Starts}, {"continue", p.Continues}, {"end", p.Ends}, {"chunk", p.Chunks}} {
			for _, name := range does.types {
				values := []string{literal(name), literal(does.does), literal(p.Name), fmt.Sprint(i + 1)}
				for _, value := range []string{first(p.Starts), first(p.Continues), first(p.Ends), last(p.Ends), first(p.Chunks), p.ID} {
					values = append(values, literal(value))
				}
				rows = append(rows, "        ("+strings.Join(values, ", ")+")")
			}
		}
	}
	fmt.Fprint(w, strings.Join(rows, ",\n"))
	fmt.Fprint(w, `;
end
$$;

comment on function agui_internal.event_roles is
    'The event types that start, continue or end a part, or are chunks of it: what they do, the part '
    'and its number, the types that pgagui writes for it (fails: the end of one that failed), and '
    'the field that names it (null: none).';
`)
}

func literal(value string) string {
	if value == "" {
		return "null"
	}
	return "'" + value + "'"
}

func last(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return names[len(names)-1]
}

// question writes agui_internal.question_name.
func question(w *bytes.Buffer, l *protocol.List) {
	fmt.Fprintf(w, `create or replace function agui_internal.question_name()
returns text
language sql
immutable
parallel safe
return '%s';

comment on function agui_internal.question_name is
    'The name of a CUSTOM event that asks. Inlined.';
`, l.Question.Name)
}

// questionMembers writes agui_internal.question_members.
func questionMembers(w *bytes.Buffer, l *protocol.List) {
	var rows []string
	for i, m := range l.Question.Members {
		for j, path := range m.Paths {
			rows = append(rows, fmt.Sprintf("        ('%s', %d, %d, '{%s}'::text[])", m.Name, i+1, j+1, strings.ReplaceAll(path, ".", ",")))
		}
	}
	fmt.Fprintf(w, `create or replace function agui_internal.question_members(out name text, out place int, out choice int, out path text[])
returns setof record
language plpgsql
immutable
parallel safe
rows %d
set search_path = pg_catalog, pg_temp
as $$
begin
    return query
    values
%s;
end
$$;

comment on function agui_internal.question_members is
    'The members of the interrupt that a question makes, in their order, and the paths in the event where '
    'each may stand, the first choice first.';
`, len(rows), strings.Join(rows, ",\n"))
}

// rules writes agui_internal.rules.
func rules(w *bytes.Buffer, l *protocol.List) {
	fmt.Fprintf(w, `create or replace function agui_internal.rules()
returns int
language sql
immutable
parallel safe
return %d;

comment on function agui_internal.rules is
    'The version of the rules by which events are folded. It stands with each snapshot.';
`, l.Rules)
}

// neededFields writes agui_internal.needed_fields.
func neededFields(w *bytes.Buffer, l *protocol.List) {
	var types []string
	for _, t := range l.Types {
		// The store knows the ids of threads and runs.
		if !t.IsFolded() || t.Part == "" && strings.HasSuffix(t.Does, " run") {
			continue
		}
		var fields []string
		for _, f := range t.Fields {
			if f.IsNeeded() && t.Alternative(f.Name) == nil && f.Kind != "any" {
				fields = append(fields, fmt.Sprintf("%q: %q", f.Name, f.Kind))
			}
		}
		if fields != nil {
			types = append(types, fmt.Sprintf("        %q: {%s}", t.Name, strings.Join(fields, ", ")))
		}
	}
	fmt.Fprintf(w, `create or replace function agui_internal.needed_fields()
returns jsonb
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
    return '{
%s
    }';
end
$$;

comment on function agui_internal.needed_fields is
    'The fields without which an event of a type has no effect, by type, with their kinds: "string | array" is either.';
`, strings.Join(types, ",\n"))
}
