package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/internal/graph"
)

func (p *program) logCommand() *cobra.Command {
	var drawGraph bool
	command := &cobra.Command{
		Use:   "log THREAD",
		Short: "Show the runs of a thread, as a table or a tree",
		Long: `Shows the runs of a thread: which run each follows, how it ended, its events (their seqs; runs side by side interleave), and
what the user asked, where RUN_STARTED has it. * marks the head, which a run follows when it names no parent.`,
		Args: oneThread,
		RunE: func(command *cobra.Command, arguments []string) error {
			pool, err := p.connect(command.Context(), 1)
			if err != nil {
				return err
			}
			defer pool.Close()
			return p.log(command.Context(), pool, arguments[0], drawGraph)
		},
	}
	command.Flags().BoolVar(&drawGraph, "graph", false, "draw the tree, the newest run first")
	return command
}

// loggedRun is a run with what the user asked.
type loggedRun struct {
	pgagui.Run
	IsHead bool   `json:"isHead"`
	Input  string `json:"input,omitempty"`
}

func (p *program) log(ctx context.Context, pool *pgxpool.Pool, threadID string, drawGraph bool) error {
	runs, err := readLog(ctx, pool, p.scope, threadID)
	if err != nil {
		return err
	}
	switch {
	case p.json:
		return p.printJSON(runs)
	case drawGraph:
		return writeGraph(p.out, runs, p.colored())
	default:
		return p.printTable(logTable(runs))
	}
}

func readLog(ctx context.Context, pool *pgxpool.Pool, scope, threadID string) ([]loggedRun, error) {
	store := pgagui.New(pool, &pgagui.Config{Scope: scope})
	runs, err := store.Runs(ctx, threadID)
	if err != nil {
		return nil, err
	}
	inputs, err := readInputs(ctx, pool, scope, threadID)
	if err != nil {
		return nil, err
	}
	logged := make([]loggedRun, len(runs))
	for i, run := range runs {
		logged[i] = loggedRun{Run: run, IsHead: i == len(runs)-1, Input: inputs[run.Number]}
	}
	return logged, nil
}

// readInputs returns what the user asked in each run of a thread, by the number of the run.
func readInputs(ctx context.Context, pool *pgxpool.Pool, scope, threadID string) (map[int]string, error) {
	rows, err := pool.Query(ctx, `
		select run.run_no, batch.events
		from agui.run
		join agui.batch using (thread_key, first_seq)
		where run.thread_key = agui.thread_key($1, $2)`, scope, threadID)
	if err != nil {
		return nil, err
	}
	inputs := map[int]string{}
	var number int
	var events json.RawMessage
	_, err = pgx.ForEachRow(rows, []any{&number, &events}, func() error {
		for first, err := range compaction.Split(events) {
			if err == nil {
				inputs[number] = inputOf(first)
			}
			return err
		}
		return nil
	})
	return inputs, err
}

// inputOf returns what the user asked, where RUN_STARTED has it: the last message of its input if that is the user's.
func inputOf(runStarted []byte) string {
	var started struct {
		Input struct {
			Messages []struct {
				Role    string          `json:"role"`
				Content json.RawMessage `json:"content"`
			} `json:"messages"`
			Resume []json.RawMessage `json:"resume"`
		} `json:"input"`
	}
	if json.Unmarshal(runStarted, &started) != nil {
		return "" // the log takes an input of any shape
	}
	input := started.Input
	if last := len(input.Messages) - 1; last >= 0 && input.Messages[last].Role == "user" {
		return textOf(input.Messages[last].Content)
	}
	if len(input.Resume) > 0 {
		return "(answer to an interrupt)"
	}
	return ""
}

// textOf returns the text of a message's content, which is a string or a list of parts.
func textOf(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return ""
	}
	var texts []string
	for _, part := range parts {
		if part.Text != "" {
			texts = append(texts, part.Text)
		}
	}
	return strings.Join(texts, " ")
}

func writeGraph(out io.Writer, runs []loggedRun, color bool) error {
	nodes := make([]graph.Run, len(runs))
	for i, run := range runs {
		nodes[i] = graph.Run{ID: run.ID, Parent: run.Parent, Label: shorten(run.Input, 60)}
		if run.IsHead {
			nodes[i].Marks = append(nodes[i].Marks, "head")
		}
		if run.Status != pgagui.Finished {
			nodes[i].Marks = append(nodes[i].Marks, string(run.Status))
		}
	}
	return graph.Write(out, nodes, graph.Options{Color: color})
}

func logTable(runs []loggedRun) [][]string {
	rows := [][]string{{" ", "RUN", "FOLLOWS", "STATUS", "SEQ", "STARTED", "INPUT"}}
	for _, run := range runs {
		rows = append(rows, []string{
			headMark(run.IsHead), run.ID, orDash(run.Parent), string(run.Status),
			fmt.Sprintf("%d–%s", run.FirstSeq, lastSeqText(run.LastSeq)),
			run.StartedAt.Local().Format("2006-01-02 15:04:05"), shorten(run.Input, 60),
		})
	}
	return rows
}

// shorten makes one line of a text, of so many characters at most.
func shorten(text string, most int) string {
	characters := []rune(strings.Join(strings.Fields(text), " "))
	if len(characters) > most {
		return string(characters[:most-1]) + "…"
	}
	return string(characters)
}
