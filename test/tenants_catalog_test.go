package test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testfile"
)

// To a function with the rights of the owner no policy applies. So each asks, by one of these, whether the role that calls has the scope, or goes through
// another public one that does. privileges.txt has by which, and TestTenantsAreAloneInRandomCalls calls them all.
var asksForScopes = []string{
	// For one thread: what changes it is refused (42501), what reads it finds nothing.
	"agui_internal.own_thread_key", "agui_internal.key_to_change", "agui_internal.own_key", "agui_internal.attach_at", "agui_internal.visible_thread_key",
	"agui_internal.visible_key", "agui_internal.checked_thread_key", "agui_internal.find_run", "agui_internal.consumer_key", "agui_internal.refuse_foreign_scope",
	"agui_internal.find_checkpoint", "agui_internal.thread_keys",
	// For all threads of the caller.
	"agui_internal.monitored_keys", "agui_internal.own_keys_in", "agui_internal.own_keys",
	"agui_internal.refuse_unless_operator",
	// What the others ask: it answers with what the caller is mapped to.
	"agui_internal.checked_caller_role",
	// These ask, too.
	"agui.load_session", "agui.save_sessions", "agui.thread_page",
}

// asked is the part of a query that gives, for a function of the name named, those of $1 that its body calls.
const asked = `array(
	select check_of.name from unnest($1::text[]) as check_of (name)
	where check_of.name <> %[1]s.pronamespace::regnamespace || '.' || %[1]s.proname
		and %[1]s.prosrc || coalesce(pg_get_function_sqlbody(%[1]s.oid), '') ~ ('\m' || check_of.name || '\(')
	order by check_of.name)`

// Every function that a role can call is bound to the scopes of its caller: those with the rights of the caller by the policies of the tables, those with
// the rights of the owner by what they ask. What is so for all scopes says it in its source: "-- check: none".
func TestEveryFunctionIsBoundToScopes(t *testing.T) {
	t.Parallel()
	unbound := map[string]bool{}
	for _, object := range testfile.SQLObjects(t) {
		unbound[object.Name] = object.Facts["check"] == "none"
	}
	rows, err := testdb.Pool(t).Query(t.Context(), `
		select format('%s.%s', proc.pronamespace::regnamespace, proc.proname), proc.prosecdef, `+fmt.Sprintf(asked, "proc")+`
		from pg_proc as proc
		where proc.pronamespace in ('agui'::regnamespace, 'agui_internal'::regnamespace) and proc.prokind in ('f', 'p') and proc.prorettype <> 'trigger'::regtype
			and (format('%s.%s', proc.pronamespace::regnamespace, proc.proname) = any ($1) or exists (
				select from unnest('{agui_reader,agui_writer,agui_worker,agui_maintainer,agui_recorder,agui_diagnoser,pg_monitor}'::text[]) as role
				where has_function_privilege(role, proc.oid, 'execute')
			))`, asksForScopes)
	must.Do(t, err)
	byPolicies, definers := 0, 0
	asks := map[string][]string{}
	var function string
	var isDefiner bool
	var checks []string
	if _, err := pgx.ForEachRow(rows, []any{&function, &isDefiner, &checks}, func() error {
		asks[function], checks = checks, nil
		switch {
		case !isDefiner:
			byPolicies++
		default:
			definers++
			if isBound := len(asks[function]) > 0; isBound == unbound[function] && !slices.Contains(asksForScopes, function) {
				t.Errorf("%s has the rights of the owner, to which no policy applies, and asks %q for the scopes of its caller; its source says that it need not ask: %t",
					function, asks[function], unbound[function])
			}
		}
		return nil
	}); err != nil || byPolicies < 150 || definers < 70 {
		t.Errorf("%d functions are bound by policies, %d ask (%v)", byPolicies, definers, err)
	}
	// What is asked leads to the caller's mapping.
	var leads func(check string, depth int) bool
	leads = func(check string, depth int) bool {
		return check == "agui_internal.checked_caller_role" ||
			depth < 10 && slices.ContainsFunc(asks[check], func(next string) bool { return leads(next, depth+1) })
	}
	for _, check := range asksForScopes {
		if !leads(check, 0) {
			t.Errorf("%s asks %q, which leads to nothing that asks who calls", check, asks[check])
		}
	}
}
