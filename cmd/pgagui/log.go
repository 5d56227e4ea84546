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
		Long: `Shows the runs of a thread: the parent of each run, its status, the seqs of its events, and the
message of the user if the input of the run is stored. The seqs of runs in parallel interleave. *
marks the head, from which a new run without a parent continues.`,
		Example: `  pgagui log trip-to-lisbon
  pgagui log trip-to-lisbon --graph`,
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
	command.Flags().BoolVar(&drawGraph, "graph", false, "draw the tree, newest run first")
	return command
}

// loggedRun is a run with the message of the user.
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
		return writeGraph(p.styled(), runs, p.colored())
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

// readInputs returns the message of the user for each run of a thread, by the number of the run.
func readInputs(ctx context.Context, pool *pgxpool.Pool, scope, threadID string) (map[int]string, error) {
	rows, err := pool.Query(ctx, `
		select run.run_no, batch.events, given.input
		from agui.run
		join agui.batch
			on batch.thread_key operator(pg_catalog.=) run.thread_key and batch.first_seq operator(pg_catalog.=) run.first_seq
		left join agui.run_input as given
			on given.thread_key operator(pg_catalog.=) run.thread_key and given.run_no operator(pg_catalog.=) run.run_no
		where run.thread_key operator(pg_catalog.=) agui.thread_key($1, $2)`, scope, threadID)
	if err != nil {
		return nil, err
	}
	inputs := map[int]string{}
	var number int
	var events, beside json.RawMessage
	_, err = pgx.ForEachRow(rows, []any{&number, &events, &beside}, func() error {
		input := beside
		for event, err := range compaction.Split(events) {
			if err != nil {
				return err
			}
			if compaction.EventType(event) == "RUN_STARTED" {
				if hasObject(event, "input") {
					input = member(event, "input")
				}
				break
			}
		}
		inputs[number] = userText(input)
		return nil
	})
	return inputs, err
}

// member returns the value of a member of a JSON object, or nil if there is none.
func member(object []byte, name string) (value []byte) {
	for key, found := range compaction.Members(object) {
		if key == name {
			value = found
		}
	}
	return value
}

// userText returns the text of the last message of an input, if the user wrote it.
func userText(input []byte) string {
	var request struct {
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		Resume []json.RawMessage `json:"resume"`
	}
	if json.Unmarshal(input, &request) != nil {
		return "" // no input, or not a RunAgentInput: the log accepts any JSON
	}
	if last := len(request.Messages) - 1; last >= 0 && request.Messages[last].Role == "user" {
		return textOf(request.Messages[last].Content)
	}
	if len(request.Resume) > 0 {
		return "(answer to an interrupt)"
	}
	return ""
}

// textOf returns the text of the content of a message, which is a string or a list of parts.
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
		nodes[i] = graph.Run{ID: run.ID, Parent: run.ParentRunID, Label: shorten(run.Input, 60)}
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
			headMark(run.IsHead), run.ID, orDash(run.ParentRunID), string(run.Status),
			fmt.Sprintf("%d–%s", run.FirstSeq, lastSeqText(run.LastSeq)),
			run.StartedAt.Local().Format("2006-01-02 15:04:05"), shorten(run.Input, 60),
		})
	}
	return rows
}

// shorten joins the lines of a text and cuts it to a maximum number of characters.
func shorten(text string, limit int) string {
	characters := []rune(strings.Join(strings.Fields(text), " "))
	if len(characters) > limit {
		return string(characters[:limit-1]) + "…"
	}
	return string(characters)
}
