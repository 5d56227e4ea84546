package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
)

const scopesText = `A scope is the tenant or user that a thread belongs to. Threads of different scopes are separate,
even if they have the same id. A scope is only a name: it protects data only if row-level security
is on ("pgagui migrate up --rls").

Which scopes a command works on:

  - Commands about threads work on one scope: that of --scope, otherwise the scope "". Those that
    have the flag --all-scopes work on all scopes with it. "pgagui unarchive" stores threads in
    their own scopes, unless --scope is given.
  - Commands for the whole database (compact, reap, repack, project, verify, heads, worker,
    retention, webhook, stats, doctor, migrate, cluster) work on all scopes. "pgagui retention set"
    and "rm" and "pgagui webhook add" need --scope or --all-scopes. verify and heads accept --scope
    NAME; the others refuse it.

If a command skips threads of other scopes, a line on stderr says so.`

// ScopesTopic returns the help about scopes.
func ScopesTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "scopes",
		Short: "Scopes, and which of them a command works on",
		Long:  scopesText,
	}
}

// ScopeIsGiven reports whether the command line sets --scope, even to "".
func ScopeIsGiven(command *cobra.Command) bool { return command.Flags().Changed("scope") }

// ScopeText names a scope, or all scopes.
func ScopeText(scope string, all bool) string {
	if all {
		return "all scopes"
	}
	return fmt.Sprintf("%q", scope)
}

// OfAllScopes makes commands refuse --scope, because they work on all scopes.
func OfAllScopes(commands ...*cobra.Command) []*cobra.Command {
	for _, command := range commands {
		command.PreRunE = refuseScope
	}
	return commands
}

// refuseScope is the PreRunE of commands that work on all scopes. They refuse --scope, because a
// user who sets it expects that only this scope is affected.
func refuseScope(command *cobra.Command, _ []string) error {
	if !ScopeIsGiven(command) {
		return nil
	}
	return WrongUsage(command, command.Name()+" works on the threads of all scopes, so it does not accept --scope")
}

// HintAtOtherScopes prints on stderr how many threads belong to other scopes, and what the command
// did with them, for instance "were skipped". It prints nothing if there are none.
func (p *Program) HintAtOtherScopes(ctx context.Context, database pgagui.DB, treatment string) error {
	const limit = 1000 // it counts no more threads on either side
	var threads int
	// The keys of the threads of a scope are a range. Count the keys before it and after it.
	err := database.QueryRow(ctx, `
		with scope as (
			select pg_catalog.concat(prefix, '-0000-000000000000')::pg_catalog.uuid as low, pg_catalog.concat(prefix, '-ffff-ffffffffffff')::pg_catalog.uuid as high
			from pg_catalog.left(agui.thread_key($1, '')::pg_catalog.text, 18) as prefix
		), other as (
			(select from agui.thread where thread_key operator(pg_catalog.<) (select low from scope) limit $2)
			union all
			(select from agui.thread where thread_key operator(pg_catalog.>) (select high from scope) limit $2)
		)
		select pg_catalog.count(*) from other`,
		p.Scope, limit+1).Scan(&threads)
	if err != nil || threads == 0 {
		return err
	}
	count := CountText(threads, "thread")
	if threads > limit {
		count = "more than " + humanize.Comma(limit) + " threads"
	}
	of := "of other scopes"
	if threads == 1 {
		of, treatment = "of another scope", ofOne.Replace(treatment)
	}
	_, err = fmt.Fprintf(p.Messages, "scope %q: %s %s %s\n", p.Scope, count, of, treatment)
	return err
}

// ofOne turns what a command did with threads into what it did with one.
var ofOne = strings.NewReplacer("are ", "is ", "were ", "was ", "includes them", "includes it")
