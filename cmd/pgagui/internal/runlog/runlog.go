// Package runlog reads the runs of a thread with the messages of the user, and draws their tree.
package runlog

import (
	"context"
	"encoding/json"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/eventjson"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/graph"
	"github.com/pgagui/pgagui/compaction"
)

// Run is a run with the message of the user.
type Run struct {
	pgagui.Run
	IsHead bool   `json:"isHead"`
	Input  string `json:"input,omitempty"`
}

// Read returns the runs of a thread in the order in which they began.
func Read(ctx context.Context, pool *pgxpool.Pool, scope, threadID string) ([]Run, error) {
	store := pgagui.New(pool, &pgagui.Config{Scope: scope, SetScope: scope != ""})
	runs, err := store.Runs(ctx, threadID)
	if err != nil {
		return nil, err
	}
	inputs, err := readInputs(ctx, pool, scope, threadID)
	if err != nil {
		return nil, err
	}
	logged := make([]Run, len(runs))
	for i, run := range runs {
		logged[i] = Run{Run: run, IsHead: i == len(runs)-1, Input: inputs[run.Number]}
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
		left join agui.input as given
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
				if eventjson.HasObject(event, "input") {
					input = eventjson.Member(event, "input")
				}
				break
			}
		}
		inputs[number] = userText(input)
		return nil
	})
	return inputs, err
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
		return eventjson.TextOf(request.Messages[last].Content)
	}
	if len(request.Resume) > 0 {
		return "(answer to an interrupt)"
	}
	return ""
}

// WriteGraph draws the tree of runs, newest run first.
func WriteGraph(out io.Writer, runs []Run, color bool) error {
	nodes := make([]graph.Run, len(runs))
	for i, run := range runs {
		nodes[i] = graph.Run{ID: run.ID, Parent: run.ParentRunID, Label: cli.Shorten(run.Input, 60)}
		if run.IsHead {
			nodes[i].Marks = append(nodes[i].Marks, "head")
		}
		if run.Status != pgagui.Finished {
			mark := cli.StatusText(run.Status)
			if why := cli.WhyText(run.Status, run.RunEnd); why != "" {
				mark += ": " + cli.Shorten(why, 60)
			}
			nodes[i].Marks = append(nodes[i].Marks, mark)
		}
	}
	return graph.Write(out, nodes, graph.Options{Color: color})
}
