package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/internal/buckets"
	"github.com/pgagui/pgagui/internal/routes"
)

//go:embed front.sql
var frontBegin string

// Front writes the SQL that makes a database with PL/Proxy a front of the cluster: it has the functions of the schema agui,
// and carries each call to the node of its thread. docs/guides/front.md says what it can do. The SQL has the passwords of the
// nodes.
func (c *Cluster) Front(ctx context.Context, w io.Writer) error {
	front := frontWriter{}
	err := front.read(ctx, c.nodes)
	if err == nil {
		front.routes, err = routes.Of()
	}
	if err == nil {
		front.pins, err = c.Pins(ctx)
	}
	if err != nil {
		return err
	}
	_, err = w.Write(front.sql())
	return err
}

type frontWriter struct {
	servers []frontServer
	places  buckets.Places
	pins    []Pin
	// bindsRoles is whether row-level security is on: then a node must know who calls.
	bindsRoles bool
	roles      []string
	types      []frontType
	routines   []frontRoutine
	routes     map[string]routes.Route
	copies     []string

	bytes.Buffer
}

type frontServer struct{ node, address, user, password string }

type frontType struct{ name, columns, comment string }

// frontRoutine is a function or a procedure of a node.
type frontRoutine struct {
	Name, Kind, Volatility string
	Arguments              string // as they are declared, with OUT arguments
	Names, Types           []string
	Identity, Result       string
	IsSet                  bool
	Columns, ColumnTypes   []string // of a result of several
	Comment                string
	Roles                  []string
}

func (f *frontWriter) read(ctx context.Context, nodes []*node) error {
	for _, node := range nodes {
		known, err := node.readMap(ctx)
		if err != nil {
			return err
		}
		if known.Node == "" {
			return fmt.Errorf("node %q has not joined the cluster", node.name)
		}
		f.places.Take(known)
		server, err := serverOf(node.name, node.pool.Config())
		if err != nil {
			return fmt.Errorf("node %q: %w", node.name, err)
		}
		f.servers = append(f.servers, server)
	}
	for bucket, at := range f.places {
		if !slices.ContainsFunc(nodes, func(node *node) bool { return node.name == at.Node }) {
			return fmt.Errorf("bucket %d is on node %q, which is not in the description", bucket, at.Node)
		}
	}
	first := nodes[0]
	err := pgx.BeginTxFunc(ctx, first.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error { return f.readCatalog(ctx, tx) })
	if err != nil {
		return fmt.Errorf("node %q: the catalog: %w", first.name, err)
	}
	return nil
}

// Parameters of an address that libpq has, and that are no secret.
var passedOn = []string{
	"sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "channel_binding", "gssencmode", "connect_timeout", "target_session_attrs", "application_name", "options",
	"keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout",
}

var parameterForm = regexp.MustCompile(`(\w+)\s*=\s*('(?:[^'\\]|\\.)*'|\S+)`)

// serverOf returns the address of a node as PL/Proxy takes it.
func serverOf(name string, config *pgxpool.Config) (frontServer, error) {
	if len("agui_"+name) > 63 {
		return frontServer{}, errors.New("its name is too long for a front (at most 58 characters)")
	}
	connection := config.ConnConfig
	hosts, ports := []string{connection.Host}, []string{fmt.Sprint(connection.Port)}
	for _, other := range connection.Fallbacks {
		if i := slices.Index(hosts, other.Host); i < 0 || ports[i] != fmt.Sprint(other.Port) {
			hosts, ports = append(hosts, other.Host), append(ports, fmt.Sprint(other.Port))
		}
	}
	parts := []string{"host=" + connectionValue(strings.Join(hosts, ",")), "port=" + strings.Join(ports, ","), "dbname=" + connectionValue(connection.Database)}
	given := map[string]string{}
	if address, err := url.Parse(config.ConnString()); err == nil && address.Scheme != "" {
		for key, values := range address.Query() {
			given[key] = values[0]
		}
	} else {
		for _, match := range parameterForm.FindAllStringSubmatch(config.ConnString(), -1) {
			given[match[1]] = strings.NewReplacer(`\\`, `\`, `\'`, `'`).Replace(strings.Trim(match[2], "'"))
		}
	}
	for _, key := range passedOn {
		if value, isGiven := given[key]; isGiven {
			parts = append(parts, key+"="+connectionValue(value))
		}
	}
	return frontServer{name, strings.Join(parts, " "), connection.User, connection.Password}, nil
}

func connectionValue(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}

func literal(text string) string {
	if strings.Contains(text, `\`) {
		return " E'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(text) + "'"
	}
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}

func identifier(name string) string { return pgx.Identifier{name}.Sanitize() }

func (f *frontWriter) readCatalog(ctx context.Context, tx pgx.Tx) error {
	// So that the catalog writes the names of types with their schemas.
	if _, err := tx.Exec(ctx, `set local search_path = pg_catalog, pg_temp`); err != nil {
		return err
	}
	if err := tx.QueryRow(ctx, `select agui_internal.has_row_security()`).Scan(&f.bindsRoles); err != nil {
		return err
	}
	rows, err := tx.Query(ctx, `
		select proc.proname, proc.prokind::text, case proc.provolatile when 'v' then 'volatile' when 's' then 'stable' else 'immutable' end,
			pg_get_function_arguments(proc.oid),
			coalesce(proc.proargnames[: proc.pronargs], '{}'),
			array(select format_type(argument.type, null) from unnest(proc.proargtypes::oid[]) with ordinality as argument (type, place) order by argument.place),
			pg_get_function_identity_arguments(proc.oid), coalesce(pg_get_function_result(proc.oid), ''), proc.proretset,
			coalesce(returned.names, '{}'), coalesce(returned.types, '{}'),
			coalesce(obj_description(proc.oid, 'pg_proc'), ''),
			array(
				select distinct role.rolname::text
				from aclexplode(proc.proacl) as granted
				join pg_roles as role on role.oid = granted.grantee
				where granted.grantee <> proc.proowner
				order by 1
			)
		from pg_proc as proc
		left join lateral (
			select array_agg(result.name order by result.place) as names, array_agg(format_type(result.type, null) order by result.place) as types
			from (
				select attribute.attname::text, attribute.atttypid, attribute.attnum::bigint
				from pg_type as type
				join pg_attribute as attribute on attribute.attrelid = type.typrelid and attribute.attnum > 0 and not attribute.attisdropped
				where type.oid = proc.prorettype
				union all
				select proc.proargnames[item.place], item.type, item.place
				from unnest(proc.proallargtypes) with ordinality as item (type, place)
				where proc.proargmodes[item.place] in ('o', 't')
			) as result (name, type, place)
		) as returned on true
		where proc.pronamespace = 'agui'::regnamespace and proc.prokind in ('f', 'p')
		order by proc.proname`)
	if err != nil {
		return err
	}
	if f.routines, err = pgx.CollectRows(rows, pgx.RowToStructByPos[frontRoutine]); err != nil {
		return err
	}
	for _, routine := range f.routines {
		f.roles = append(f.roles, routine.Roles...)
	}
	slices.Sort(f.roles)
	f.roles = slices.Compact(f.roles)

	// The types of rows that functions take or return, and those within.
	if rows, err = tx.Query(ctx, `
		with recursive used (type) as (
			select case when type.typelem <> 0 then type.typelem else type.oid end
			from pg_proc as proc
			cross join lateral unnest(array[proc.prorettype] || proc.proargtypes::oid[]) as given (type)
			join pg_type as type on type.oid = given.type
			where proc.pronamespace = 'agui'::regnamespace and type.typnamespace = 'agui'::regnamespace
			union
			select case when type.typelem <> 0 then type.typelem else type.oid end
			from used
			join pg_type as row on row.oid = used.type
			join pg_attribute as attribute on attribute.attrelid = row.typrelid and attribute.attnum > 0 and not attribute.attisdropped
			join pg_type as type on type.oid = attribute.atttypid and type.typnamespace = 'agui'::regnamespace
		)
		select type.typname, string_agg(quote_ident(attribute.attname) || ' ' || format_type(attribute.atttypid, attribute.atttypmod), ', ' order by attribute.attnum),
			coalesce(obj_description(type.oid, 'pg_type'), obj_description(type.typrelid, 'pg_class'), '')
		from used
		join pg_type as type on type.oid = used.type
		join pg_attribute as attribute on attribute.attrelid = type.typrelid and attribute.attnum > 0 and not attribute.attisdropped
		group by type.oid
		order by type.oid`); err != nil {
		return err
	}
	if f.types, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (t frontType, err error) {
		return t, row.Scan(&t.name, &t.columns, &t.comment)
	}); err != nil {
		return err
	}

	// What a front computes itself.
	if rows, err = tx.Query(ctx, `
		select pg_get_functiondef(proc.oid)
		from unnest(array['agui.thread_key(text, text)', 'agui_internal.bucket_of(uuid)', 'agui.bucket(text, text)']::regprocedure[]) with ordinality as copied (oid, place)
		join pg_proc as proc on proc.oid = copied.oid
		order by copied.place`); err != nil {
		return err
	}
	f.copies, err = pgx.CollectRows(rows, pgx.RowTo[string])
	return err
}

func (f *frontWriter) line(format string, arguments ...any) {
	fmt.Fprintf(f, format+"\n", arguments...)
}

func (f *frontWriter) sql() []byte {
	f.WriteString(frontBegin)
	f.line("\n-- The nodes. The mappings have their passwords, which only the owner and superusers can read.")
	for _, server := range f.servers {
		name := identifier("agui_" + server.node)
		f.line("create server if not exists %s foreign data wrapper plproxy options (disable_binary '1', p0 '');", name)
		f.line("alter server %s options (set p0 %s);", name, literal(server.address))
		f.line("drop user mapping if exists for current_user server %s;", name)
		password := ""
		if server.password != "" {
			password = ", password " + literal(server.password)
		}
		f.line("create user mapping for current_user server %s options (user %s%s);", name, literal(server.user), password)
		f.line("insert into agui_front.node (name) values (%s);", literal(server.node))
	}
	f.line("insert into agui_front.bucket (bucket, node, epoch)")
	f.line("select placed.bucket, nodes.name, placed.epoch from (values")
	for bucket, at := range f.places {
		end := ","
		if bucket == Buckets-1 {
			end = ""
		}
		f.line("    (%d, %s, %d)%s", bucket, literal(at.Node), at.Epoch, end)
	}
	f.line(") as placed (bucket, node, epoch) join agui_front.node as nodes on nodes.name = placed.node;")
	for _, pin := range f.pins {
		hash := sha256.Sum256([]byte(pin.Scope))
		f.line(`insert into agui_front.pinned_scope (scope_hash, bucket) values ('\x%x', %d);`, hash[:8], pin.Bucket)
	}

	f.line("\n-- The roles of the nodes.\ndo $do$\ndeclare\n    missing text;\nbegin")
	f.line("    for missing in select wanted.name from unnest(%s::text[]) as wanted (name) where to_regrole(quote_ident(wanted.name)) is null loop", literal("{"+strings.Join(f.roles, ",")+"}"))
	f.line("        execute format('create role %%I nologin', missing);\n    end loop;\nend\n$do$;")
	granted := make([]string, len(f.roles))
	for i, role := range f.roles {
		granted[i] = identifier(role)
	}
	if len(f.roles) > 0 {
		to := strings.Join(granted, ", ")
		f.line("grant usage on schema agui, agui_front to %s;", to)
		f.line("grant select on agui_front.node, agui_front.bucket, agui_front.pinned_scope to %s;", to)
		if f.bindsRoles {
			for _, server := range f.servers {
				f.line("grant usage on foreign server %s to %s;", identifier("agui_"+server.node), to)
			}
		}
	}

	f.line("\n-- Rows of results.")
	for _, t := range f.types {
		f.line("create type agui.%s as (%s);", identifier(t.name), t.columns)
		f.line("comment on type agui.%s is %s;", identifier(t.name), literal(t.comment))
	}
	f.line("\n-- The bucket of a thread.")
	for _, text := range f.copies {
		f.line("%s;", strings.ReplaceAll(strings.TrimSpace(text), "agui_internal.bucket_of", "agui_front.bucket_of"))
	}
	for _, routine := range f.routines {
		f.routine(routine, f.routes[routine.Name])
	}
	f.line("\n-- What is for all to call stays so; the rest is for the roles of the nodes.")
	f.line("revoke execute on all functions in schema agui_front from public;")
	if len(granted) > 0 {
		f.line("grant execute on function agui_front.server_of(text), agui_front.bucket_of(uuid), agui_front.node_of(text, text), agui_front.node_of_all(text, text[], text, text[]),")
		f.line("    agui_front.begin_write(text), agui_front.learn(text), agui_front.pause(int), agui_front.next_node(text, timestamptz, int, boolean, text, text, text, text) to %s;", strings.Join(granted, ", "))
	}
	for _, routine := range f.routines {
		if signature, isProxied := f.proxyOf(routine, f.routes[routine.Name]); isProxied && len(routine.Roles) > 0 {
			f.line("grant execute on function %s to %s;", signature, rolesText(routine.Roles))
		}
	}
	f.line("\ncommit;")
	if f.bindsRoles {
		f.line("\n-- Row-level security is on: a node has to know who calls. Each role that calls needs a mapping to its role on each node:")
		for _, server := range f.servers {
			f.line("-- create user mapping for ROLE server %s options (user 'ROLE', password '…');", identifier("agui_"+server.node))
		}
	}
	return f.Bytes()
}

func rolesText(roles []string) string {
	named := make([]string, len(roles))
	for i, role := range roles {
		named[i] = identifier(role)
	}
	return strings.Join(named, ", ")
}

// proxyOf returns the signature of the function that calls a node.
func (f *frontWriter) proxyOf(routine frontRoutine, route routes.Route) (signature string, isProxied bool) {
	switch route.Front {
	case routes.Sent, routes.OneNode, routes.Split, routes.Merged, routes.Anywhere:
		// agui.threads goes by agui.thread_page, agui.load_sessions by agui.load_session.
		isProxied = routine.Name != "threads" && routine.Name != "load_sessions"
	}
	types := append([]string{"text"}, routine.Types...)
	for range f.settings(routine) {
		types = append(types, "text")
	}
	return fmt.Sprintf("agui_front.%s(%s)", identifier(routine.Name), strings.Join(types, ", ")), isProxied
}

// settings are those of the session that the answer of a function depends on.
func (f *frontWriter) settings(routine frontRoutine) (names []string) {
	if f.bindsRoles {
		names = append(names, "agui.scope")
	}
	if routine.Name == "day_report" {
		names = append(names, "timezone")
	}
	return names
}

// proxy writes the function that calls a node.
func (f *frontWriter) proxy(routine frontRoutine, signature string) {
	var given []string
	for i := range routine.Types {
		given = append(given, fmt.Sprint("$", i+2))
	}
	// Set for the one statement, and before the function is called, because an argument of it waits for that.
	var set, isSet []string
	rights := "security invoker"
	if !f.bindsRoles {
		rights = "security definer"
		set = append(set, "set_config('agui.front', 'calls as one role', true)")
	}
	for i, name := range f.settings(routine) {
		set = append(set, fmt.Sprintf("set_config(%s, $%d, true)", literal(name), len(routine.Types)+2+i))
	}
	for i := range set {
		set[i] += fmt.Sprint(" as s", i)
		isSet = append(isSet, fmt.Sprintf("session.s%d is null", i))
	}
	given[0] = fmt.Sprintf("case when %s then $2 else $2 end", strings.Join(isSet, " or "))
	statement := fmt.Sprintf("select answer.* from (select %s offset 0) as session cross join lateral agui.%s(%s) as answer",
		strings.Join(set, ", "), identifier(routine.Name), strings.Join(given, ", "))
	result := routine.Result
	if strings.HasPrefix(result, "TABLE(") || result == "SETOF record" || result == "record" {
		columns := make([]string, len(routine.Columns))
		for i, name := range routine.Columns {
			columns[i] = identifier(name) + " " + routine.ColumnTypes[i]
		}
		result = "TABLE(" + strings.Join(columns, ", ") + ")"
	}
	f.line("create function %s returns %s language plproxy %s as $front$", signature, result, rights)
	f.line("    cluster agui_front.server_of($1);\n    run on 0;\n    %s;\n$front$;", statement)
}

// call returns the call of the function's proxy on a node. An argument is given as it is, but for those replaced.
func (f *frontWriter) call(routine frontRoutine, node string, replaced map[string]string) string {
	given := []string{node}
	for i, name := range routine.Names {
		if value := replaced[name]; value != "" {
			given = append(given, value)
		} else {
			given = append(given, fmt.Sprint("$", i+1))
		}
	}
	for _, name := range f.settings(routine) {
		given = append(given, fmt.Sprintf("coalesce(current_setting(%s, true), '')", literal(name)))
	}
	return fmt.Sprintf("agui_front.%s(%s)", identifier(routine.Name), strings.Join(given, ", "))
}

// argument returns how the body of a function names an argument.
func (routine frontRoutine) argument(name string) string {
	if i := slices.Index(routine.Names, name); i >= 0 {
		return fmt.Sprint("$", i+1)
	}
	return "null"
}

// routine writes a function of the schema agui, and its proxy.
func (f *frontWriter) routine(routine frontRoutine, route routes.Route) {
	if route.Front == routes.Local || route.Front == routes.Missing {
		return
	}
	if signature, isProxied := f.proxyOf(routine, route); isProxied {
		f.WriteString("\n")
		f.proxy(routine, signature)
	}
	kind := "function"
	if routine.Kind == "p" {
		kind = "procedure"
	}
	name := "agui." + identifier(routine.Name)
	f.line("create %s %s(%s)", kind, name, routine.Arguments)
	language := "plpgsql"
	body := ""
	switch {
	case route.Front == routes.Refused:
		body = refusal(routine, route)
	case routine.Name == "threads":
		language = "sql"
		body = "    select thread.* from agui.thread_page(" + f.positions(routine) + ") as page cross join unnest(page.threads) as thread\n"
	case routine.Name == "load_sessions":
		language = "sql"
		body = loadSessionsBody
	case routine.Name == "poll" || routine.Name == "keep_alive" || routine.Name == "append_many":
		body = f.bodyForArrays(routine)
	case route.Front == routes.Merged:
		body = f.mergedBody(routine)
	default:
		body = f.sentBody(routine, route)
	}
	if kind == "function" {
		f.line("returns %s", routine.Result)
	}
	f.line("language %s", language)
	if kind == "function" {
		f.line("%s", routine.Volatility)
	}
	if slices.ContainsFunc(routine.Types, func(name string) bool {
		return strings.HasPrefix(name, "timestamp") || strings.HasPrefix(name, "date") || strings.HasPrefix(name, "interval")
	}) {
		f.line("set datestyle = 'ISO'\nset intervalstyle = 'postgres'") // a node reads them so
	}
	f.line("as $front$\n%s$front$;", body)
	f.line("comment on %s %s(%s) is %s;", kind, name, routine.Identity, literal(routine.Comment))
	f.line("revoke execute on %s %s(%s) from public;", kind, name, routine.Identity)
	if len(routine.Roles) > 0 {
		f.line("grant execute on %s %s(%s) to %s;", kind, name, routine.Identity, rolesText(routine.Roles))
	}
}

func (f *frontWriter) positions(routine frontRoutine) string {
	given := make([]string, len(routine.Names))
	for i := range given {
		given[i] = fmt.Sprint("$", i+1)
	}
	return strings.Join(given, ", ")
}

func refusal(routine frontRoutine, route routes.Route) string {
	return fmt.Sprintf(`begin
    raise exception using
        errcode = '0A000',
        message = %s,
        hint = %s;
end
`, literal("agui."+routine.Name+": a front of a cluster does not have this"), literal(strings.ToUpper(route.Instead[:1])+route.Instead[1:]+"."))
}

const frontVariables = `    front_begun   constant timestamptz := clock_timestamp();
    front_state   text;
    front_message text;
    front_detail  text;
    front_hint    text;
`

// onError calls agui_front.next_node within an exception handler.
func onError(routine frontRoutine, node, try string) string {
	reads := fmt.Sprint(routine.Volatility != "volatile" && routine.Name != "usage" && routine.Name != "attach" && routine.Name != "verify")
	return fmt.Sprintf(`                get stacked diagnostics
                    front_state = returned_sqlstate, front_message = message_text, front_detail = pg_exception_detail, front_hint = pg_exception_hint;
                %[1]s := agui_front.next_node(%[1]s, front_begun, %[2]s, %[3]s, front_state, front_message, front_detail, front_hint);
`, node, try, reads)
}

// sentBody is that of a function which one node answers.
func (f *frontWriter) sentBody(routine frontRoutine, route routes.Route) string {
	thread, scope := routine.argument("thread_id"), routine.argument("scope")
	node := fmt.Sprintf("agui_front.node_of(%s, %s)", scope, thread)
	switch {
	case route.Front == routes.Anywhere:
		node = "agui_front.node_of('', '')"
	case routine.Name == "save_session":
		node = fmt.Sprintf("agui_front.node_of(%s, %s ->> 'threadId')", scope, routine.argument("session"))
	case routine.Name == "save_sessions":
		sessions := routine.argument("sessions")
		node = fmt.Sprintf(`agui_front.node_of_all('agui.save_sessions', null, %s, array(
        select session.value ->> 'threadId' from json_array_elements(case json_typeof(%s) when 'array' then %[2]s end) as session (value)
    ))`, scope, sessions)
	}
	var body strings.Builder
	fmt.Fprintf(&body, "declare\n    front_node    text := %s;\n%sbegin\n", node, frontVariables)
	if route.By == routes.ThreadIfNamed {
		fmt.Fprintf(&body, "    if %s is null then\n        %s    end if;\n", thread, strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(refusal(routine, route), "begin\n    "), "end\n"), "\n", "\n    "))
	}
	if routine.Volatility == "volatile" {
		fmt.Fprintf(&body, "    perform agui_front.begin_write(%s);\n", literal("agui."+routine.Name))
	}
	call := f.call(routine, "front_node", nil)
	answer := "return " + call + ";"
	none := "return null;"
	switch {
	case routine.IsSet:
		answer, none = "return query select * from "+call+";\n            return;", "return;"
	case routine.Result == "void":
		answer, none = "perform "+call+";\n            return;", "return;"
	}
	fmt.Fprintf(&body, `    for front_try in 1 .. 100000 loop
        begin
            %s
        exception
            when others then
%s        end;
        if front_node is null then
            %s
        end if;
    end loop;
end
`, answer, onError(routine, "front_node", "front_try"), none)
	return body.String()
}

const loadSessionsBody = `    select coalesce(json_agg(agui.load_session(item.thread_id, item.run_id, $3) order by item.place), '[]')
    from unnest($1, $2) with ordinality as item (thread_id, run_id, place)
`

// bodyForArrays is that of a function with an item for each thread: each node gets its items. What a node no longer has, another one gets.
func (f *frontWriter) bodyForArrays(routine frontRoutine) string {
	replaced := map[string]string{}
	for i, name := range routine.Names {
		if strings.HasSuffix(routine.Types[i], "[]") {
			replaced[name] = fmt.Sprintf("case when cardinality($%d) = cardinality($1) then array(select ($%[1]d)[kept.place] from unnest(front_places) with ordinality as kept (place, nth) order by kept.nth) else $%[1]d end", i+1)
		}
	}
	call := f.call(routine, "front_node", replaced)
	number := map[string]string{"poll": "thread_no", "keep_alive": "call_no", "append_many": "call_no"}[routine.Name]
	isMoved := map[string]string{"poll": "front_answer.problem = 'UI027'", "keep_alive": "false", "append_many": "front_answer.error_code = 'UI027'"}[routine.Name]
	begin := ""
	if routine.Volatility == "volatile" {
		begin = fmt.Sprintf("    perform agui_front.begin_write(%s);\n", literal("agui."+routine.Name))
	}
	if routine.Name == "append_many" {
		begin += "    perform agui_front.node_of_all('agui.append_many', $11, null, $1);\n"
	}
	scopes := routine.argument("scopes")
	// A row about a moved thread says where it is, but for those of poll: there the other nodes are called in turn.
	elsewhere := "front_answer.detail::json -> 0 ->> 'node'"
	if routine.Name == "poll" {
		elsewhere = "(select coalesce(min(other.name) filter (where other.name > front_node), min(other.name)) from agui_front.node as other)"
	}
	return fmt.Sprintf(`declare
%[1]s    front_nodes   text[] := array(
        select agui_front.node_of(coalesce(item.scope, ''), item.thread_id)
        from unnest($1, %[2]s) with ordinality as item (thread_id, scope, place)
        order by item.place
    );
    front_node    text := coalesce(front_nodes[1], agui_front.node_of('', ''));
    front_answer  record;
    front_places  int[];
    front_is_moved boolean;
    front_moved   int := 0;
begin
%[3]s    loop
        front_places := array(select item.place from unnest(front_nodes) with ordinality as item (node, place) where item.node = front_node order by item.place);
        front_is_moved := false;
        begin
            for front_answer in select * from %[4]s loop
                front_answer.%[5]s := front_places[front_answer.%[5]s];
                if (%[6]s) and clock_timestamp() < front_begun + interval '10 seconds' then
                    front_nodes[front_answer.%[5]s] := %[7]s;
                    front_is_moved := true;
                    continue;
                end if;
                return next front_answer;
            end loop;
            -- Those are done.
            front_nodes := array(
                select case when not item.place = any (front_places) or item.node <> front_node then item.node end
                from unnest(front_nodes) with ordinality as item (node, place)
                order by item.place
            );
            if front_is_moved then
                front_moved := front_moved + 1;
                perform agui_front.pause(front_moved);
            end if;
        exception
            when others then
                get stacked diagnostics
                    front_state = returned_sqlstate, front_message = message_text, front_detail = pg_exception_detail, front_hint = pg_exception_hint;
                front_moved := front_moved + 1;
                perform agui_front.next_node(front_node, front_begun, front_moved, false, front_state, front_message, front_detail, front_hint);
                front_nodes := array(
                    select coalesce(moved.node, item.node)
                    from unnest(front_nodes, $1, %[2]s) with ordinality as item (node, thread_id, scope, place)
                    left join (
                        select distinct place ->> 'scope' as scope, place ->> 'threadId' as thread_id, place ->> 'node' as node
                        from json_array_elements(regexp_replace(front_detail, '^Remote detail: ', '')::json) as place
                    ) as moved
                        on item.node = front_node and moved.thread_id = item.thread_id and moved.scope = coalesce(item.scope, '')
                    order by item.place
                );
        end;
        select item.node into front_node from unnest(front_nodes) as item (node) where item.node is not null order by item.node = front_node limit 1;
        exit when not found;
    end loop;
end
`, frontVariables, scopes, begin, call, number, isMoved, elsewhere)
}

// mergedBody is that of a function that all nodes answer.
func (f *frontWriter) mergedBody(routine frontRoutine) string {
	rows := "agui_front.node as node cross join lateral " + f.call(routine, "node.name", nil) + " as found"
	var answer string
	limit := routine.argument("max_rows")
	switch routine.Name {
	case "heads": // the last one, of a thread that two nodes have for a moment
		answer = `select (last.of).* from (
                select distinct on (agui.thread_key(found.scope, found.thread_id)) agui.thread_key(found.scope, found.thread_id) as key, found as of
                from ` + rows + ` order by key, found.seq desc
            ) as last order by last.key`
	case "list_runs":
		answer = `select (run.row).* from (select distinct on (found.cursor) found as row from ` + rows + ` order by found.cursor) as run
            order by (run.row).ended_at desc, (run.row).cursor desc limit ` + limit
	case "search":
		answer = `select (text.row).* from (select distinct on (found.cursor) found as row from ` + rows + ` order by found.cursor) as text
            order by (text.row).rank desc, (text.row).said_at desc, split_part((text.row).cursor, ' ', 3)::uuid, split_part((text.row).cursor, ' ', 4)::bigint limit ` + limit
	case "waiting":
		answer = `select (asked.row).* from (select distinct on (found::text) found as row from ` + rows + ` order by found::text) as asked
            order by (asked.row).asked_at, (asked.row).thread_key, (asked.row).run_no limit ` + limit
	case "day_report":
		answer = "select " + sums(routine, "day") + " from " + rows + " group by found.day order by found.day"
	case "model_report":
		answer = "select " + sums(routine, "provider", "model") + " from " + rows + ` group by found.provider, found.model
            order by sum(found.total_tokens) desc nulls last, found.provider collate "C", found.model collate "C"`
	case "stats", "lag":
		answer = "select " + sums(routine) + " from " + rows
	case "thread_page":
		answer = threadPages(rows, limit)
	default:
		panic("how answers of agui." + routine.Name + " are merged")
	}
	give := "return query " + answer + ";\n        return;"
	if !routine.IsSet {
		give = fmt.Sprintf("select * into front_answer from (%s) as merged;\n        return front_answer;", answer)
	}
	variables := frontVariables
	if !routine.IsSet {
		variables += "    front_answer  " + routine.Result + ";\n"
	}
	return fmt.Sprintf(`#variable_conflict use_column
declare
    front_node    text;
%sbegin
    begin
        %s
    exception
        when others then
%s    end;
    return%s;
end
`, variables, give, onError(routine, "front_node", "0"), map[bool]string{true: "", false: " null"}[routine.IsSet])
}

// sums adds up the columns of a report, for each of some keys.
func sums(routine frontRoutine, keys ...string) string {
	columns := make([]string, len(routine.Columns))
	for i, column := range routine.Columns {
		name := "found." + identifier(column)
		switch kind := routine.ColumnTypes[i]; {
		case slices.Contains(keys, column):
			columns[i] = name
		case kind == "boolean":
			columns[i] = "bool_and(" + name + ")"
		case kind == "interval":
			columns[i] = "max(" + name + ")"
		default:
			columns[i] = fmt.Sprintf("sum(%s)::%s", name, kind)
		}
	}
	return strings.Join(columns, ", ")
}

// threadPages merges pages. A node whose page ends has looked at threads down to its next_cursor, so the merged page does not go
// below that of any node.
func threadPages(rows, limit string) string {
	return `
            with page as materialized (select found.* from ` + rows + `),
            bound as (select max(page.next_cursor collate "C") as cursor from page),
            thread as materialized (
                select shown.*
                from (
                    -- A thread that was moved is on two nodes for a moment.
                    select distinct on (thread.thread_id) thread.cursor, thread.active_at, thread
                    from page
                    cross join unnest(page.threads) as thread
                    order by thread.thread_id, thread.cursor desc
                ) as shown
                cross join bound
                where bound.cursor is null or shown.cursor >= bound.cursor
                order by shown.active_at desc, shown.cursor desc
                limit ` + limit + ` + 1
            ),
            listed as materialized (select * from thread order by active_at desc, cursor desc limit ` + limit + `)
            select
                array(select listed.thread from listed order by listed.active_at desc, listed.cursor desc),
                case
                    when (select count(*) from thread) > ` + limit + ` then (select min(listed.cursor collate "C") from listed)
                    else bound.cursor
                end,
                case
                    when (select count(*) from listed) < ` + limit + ` then (select max(page.searched_to) from page where page.next_cursor = bound.cursor)
                end
            from bound`
}
