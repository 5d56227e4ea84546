package read

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/transcript"
)

// factsOf are the facts of the scope, or of all.
func (p *program) factsOf(store *pgagui.Store, allScopes bool) pgagui.Facts {
	if allScopes {
		return store.FactsOfAllScopes()
	}
	return store.Facts()
}

// addAllScopes adds the flag --all-scopes, which excludes --scope.
func addAllScopes(command *cobra.Command, allScopes *bool) {
	command.Flags().BoolVar(allScopes, "all-scopes", false, "the conversations of all scopes, not only of one")
}

func checkAllScopes(command *cobra.Command, allScopes bool) error {
	if allScopes && cli.ScopeIsGiven(command) {
		return cli.WrongUsage(command, "--scope and --all-scopes exclude each other")
	}
	return nil
}

func (p *program) waitingCommand() *cobra.Command {
	var options pgagui.WaitingOptions
	var allScopes bool
	command := &cobra.Command{
		Use:   "waiting",
		Short: "List what waits for an answer, in all threads of a scope",
		Long: `Lists the interrupts that wait for an answer, and the tool calls that wait for a result, in all
threads of a scope, those asked first first. A thread with a run in progress does not wait. It shows
what "pgagui job project", or the worker, found last.

A tool call waits if its run finished more than 10 seconds ago (the setting call_delay), and the
conversation has no result of it. If the client sent a list of tools, only calls of these wait.

With --json each line is an object with scope, threadId, runId, kind (interrupt or call), agent,
interruptId, reason, message, toolCallId, tool, arguments, askedAt and expiresAt.`,
		Example: `  pgagui waiting
  pgagui waiting --all-scopes --json | jq -r '[.askedAt, .threadId, .message] | @tsv'`,
		Args: cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if options.Limit < 1 {
				return cli.WrongUsage(command, "--limit must be 1 or more")
			}
			if err := checkAllScopes(command, allScopes); err != nil {
				return err
			}
			return p.WithStore(command.Context(), func(store *pgagui.Store) error {
				return p.waiting(command.Context(), store, p.factsOf(store, allScopes), options)
			})
		},
	}
	command.Flags().StringVar(&options.Agent, "agent", "", "list only threads of this `agent`")
	command.Flags().IntVar(&options.Limit, "limit", 100, "maximum `number` of interrupts and calls")
	addAllScopes(command, &allScopes)
	return command
}

func (p *program) waiting(ctx context.Context, store *pgagui.Store, facts pgagui.Facts, options pgagui.WaitingOptions) error {
	waiting, err := facts.Waiting(ctx, options)
	if err = p.Partly(err); err != nil {
		return err
	}
	for i, one := range waiting {
		if one.Message == "" && one.Kind == "interrupt" && !p.JSON {
			waiting[i].Message = questionOf(ctx, store.InScope(one.Scope), one)
		}
	}
	return cli.PrintList(p.Program, waiting, "", []string{"ASKED", "EXPIRES", "THREAD", "RUN", "REASON", "MESSAGE"}, func(one pgagui.WaitingInterrupt) []string {
		reason := one.Reason
		if one.Kind == "call" {
			reason = "tool call"
		}
		question := cmp.Or(one.Message, strings.TrimSpace(one.Tool+" "+one.Arguments))
		return []string{cli.TimeText(one.AskedAt), cli.TimeOrDash(one.ExpiresAt), one.ThreadID, one.RunID, cli.OrDash(reason), cli.OrDash(question)}
	}, 5)
}

// questionOf returns what an interrupt without a message asks. It is empty if the conversation cannot be read, or has gone on.
func questionOf(ctx context.Context, store *pgagui.Store, asked pgagui.WaitingInterrupt) string {
	restored, err := store.Restore(ctx, asked.ThreadID, pgagui.At{RunID: asked.RunID})
	if err != nil {
		return ""
	}
	for _, interrupt := range restored.Interrupts {
		var named struct{ ID string }
		if json.Unmarshal(interrupt, &named) == nil && named.ID == asked.InterruptID {
			return transcript.Question(interrupt, restored.Messages)
		}
	}
	return ""
}

func (p *program) reportCommand() *cobra.Command {
	var since string
	var allScopes bool
	command := &cobra.Command{
		Use:   "report",
		Short: "Summarize the runs, tools and models of a period",
		Long: `Prints a page about all threads of a scope: runs by day, runs by agent, tools with their failures,
and tokens by model. It shows what "pgagui job project", or the worker, found last.

With --json it is one object: since, days, agents, tools, models, waiting, as GET /report answers.`,
		Example: `  pgagui report
  pgagui report --since 30d --all-scopes
  pgagui report --since 1d --json | jq '.tools[] | select(.failed > 0)'`,
		Args: cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			from, err := cli.PointInTime("--since", since, time.Now())
			if err != nil {
				return cli.WrongUsage(command, err.Error())
			}
			if err := checkAllScopes(command, allScopes); err != nil {
				return err
			}
			return p.WithStore(command.Context(), func(store *pgagui.Store) error {
				return p.report(command.Context(), p.factsOf(store, allScopes), from)
			})
		},
	}
	command.Flags().StringVar(&since, "since", "7d", "`time` from which on runs count: "+cli.TimeFormats)
	addAllScopes(command, &allScopes)
	return command
}

func (p *program) report(ctx context.Context, facts pgagui.Facts, since time.Time) error {
	report, err := facts.Report(ctx, since)
	if err = p.Partly(err); err != nil {
		return err
	}
	if p.JSON {
		return p.PrintJSON(report)
	}
	return p.printReport(report)
}

func (p *program) printReport(report pgagui.Report) error {
	if len(report.Days) == 0 {
		_, err := fmt.Fprintf(p.Out, "no runs since %s\n", cli.TimeText(report.Since))
		return err
	}
	most := int64(0)
	for _, day := range report.Days {
		most = max(most, day.Runs)
	}
	days := [][]string{{"DAY", "RUNS", "", "FAILED", "THREADS", "EVENTS", "TEXT"}}
	for _, day := range report.Days {
		days = append(days, []string{
			day.Day, humanize.Comma(day.Runs), bar(day.Runs, most), failures(day.Failed), humanize.Comma(day.Threads),
			humanize.Comma(int64(day.Events)), humanize.Bytes(uint64(day.Bytes)),
		})
	}
	agents := [][]string{{"AGENT", "RUNS", "FAILED", "CUT OFF", "CANCELLED", "MEDIAN", "P95", "FIRST TOKEN", "P95"}}
	for _, agent := range report.Agents {
		agents = append(agents, []string{
			cli.OrDash(agent.Agent), humanize.Comma(agent.Runs), failures(agent.Failed), failures(agent.CutOff), failures(agent.Cancelled),
			optionalDuration(agent.MedianDuration), optionalDuration(agent.P95Duration),
			optionalDuration(agent.MedianFirstToken), optionalDuration(agent.P95FirstToken),
		})
	}
	tools := [][]string{{"TOOL", "CALLS", "FAILED", "", "CUT OFF", "WAITING", "MEDIAN", "P95", "LAST ERROR"}}
	for _, tool := range report.Tools {
		tools = append(tools, []string{
			tool.Tool, humanize.Comma(tool.Calls), failures(tool.Failed), bar(tool.Failed, tool.Calls), failures(tool.CutOff), failures(tool.Waiting),
			optionalDuration(tool.MedianDuration), optionalDuration(tool.P95Duration), cli.OrDash(tool.LastError),
		})
	}
	models := [][]string{{"PROVIDER", "MODEL", "RUNS", "INPUT", "OUTPUT", "TOTAL"}}
	for _, model := range report.Models {
		models = append(models, []string{
			cli.OrDash(model.Provider), cli.OrDash(model.Model), humanize.Comma(model.Runs), humanize.Comma(int64(model.InputTokens)),
			humanize.Comma(int64(model.OutputTokens)), humanize.Comma(int64(model.TotalTokens)),
		})
	}
	for i, table := range [][][]string{days, agents, tools, models} {
		if len(table) == 1 {
			continue
		}
		if i > 0 {
			fmt.Fprintln(p.Out)
		}
		if err := p.PrintTable(table, len(table[0])-1); err != nil {
			return err
		}
	}
	if len(report.Waiting) > 0 {
		_, err := fmt.Fprintf(p.Out, "\n%s for an answer, the first since %s (pgagui waiting)\n",
			cli.CountText(len(report.Waiting), "question")+" waiting", cli.TimeText(report.Waiting[0].AskedAt))
		return err
	}
	return nil
}

// bar is a bar of up to ten blocks; a part that is not zero has one at least.
func bar(part, whole int64) string {
	if part <= 0 || whole <= 0 {
		return ""
	}
	return strings.Repeat("█", max(1, int(part*10/whole)))
}

// failures is a count, or a dash for none, so that what is wrong is seen.
func failures(n int64) string {
	if n == 0 {
		return "-"
	}
	return humanize.Comma(n)
}

func optionalDuration(d *time.Duration) string {
	if d == nil {
		return "-"
	}
	return cli.DurationText(*d)
}
