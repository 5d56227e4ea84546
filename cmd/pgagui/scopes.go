package main

import (
	"context"
	"fmt"

	"github.com/dustin/go-humanize"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"
)

const scopesText = `A scope is the tenant or user that a thread belongs to. Threads of different scopes never meet, even when they have the same id.
A scope is a name, not a protection.

Which scopes a command works on:

  - What names threads, imports or removes them works on one scope: that of --scope, or without it the scope "", which has no name.
    "pgagui erase --older-than" and the worker's --erase take --all-scopes too.
  - What looks after the whole database (compact, reap, repack, verify, worker, stats, migrate) works on all scopes. "pgagui verify --scope NAME"
    checks one; the others refuse --scope.

Where a command passes over the threads of other scopes, a line on stderr says so.`

func scopesTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "scopes",
		Short: "Which tenants' threads a command works on",
		Long:  scopesText,
	}
}

// scopeIsGiven reports whether the command line names a scope; "" is one.
func scopeIsGiven(command *cobra.Command) bool { return command.Flags().Changed("scope") }

// refuseScope is the PreRunE of commands that work on all scopes: whoever gives them one would get more than was meant.
func refuseScope(command *cobra.Command, _ []string) error {
	if !scopeIsGiven(command) {
		return nil
	}
	return &usageError{problem: command.Name() + " works on the threads of all scopes: leave --scope out", command: command.CommandPath()}
}

// hintAtOtherScopes says on stderr how many threads the scope has not, and what became of them. It says nothing when there are none.
func (p *program) hintAtOtherScopes(ctx context.Context, pool *pgxpool.Pool, became string) error {
	const most = 1000 // that are counted
	var threads int
	// The threads of a scope are a range of keys: those before it and behind it are of others.
	err := pool.QueryRow(ctx, `
		with scope as (
			select pg_catalog.concat(prefix, '-0000-000000000000')::pg_catalog.uuid as low, pg_catalog.concat(prefix, '-ffff-ffffffffffff')::pg_catalog.uuid as high
			from pg_catalog.left(agui.thread_key($1, '')::pg_catalog.text, 18) as prefix
		), other as (
			(select from agui.thread where thread_key operator(pg_catalog.<) (select low from scope) limit $2)
			union all
			(select from agui.thread where thread_key operator(pg_catalog.>) (select high from scope) limit $2)
		)
		select pg_catalog.count(*) from other`,
		p.scope, most+1).Scan(&threads)
	if err != nil || threads == 0 {
		return err
	}
	count := countText(threads, "thread")
	if threads > most {
		count = "more than " + humanize.Comma(most) + " threads"
	}
	_, err = fmt.Fprintf(p.messages, "scope %q: %s of other scopes %s\n", p.scope, count, became)
	return err
}
