package read

import (
	"context"
	"fmt"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
)

func (p *program) branches(ctx context.Context, store *pgagui.Store, threadID string) error {
	branches, err := store.Branches(ctx, threadID)
	if err != nil {
		return err
	}
	if p.JSON {
		return p.PrintJSON(branches)
	}
	rows := [][]string{{" ", "BRANCH", "STATUS", "RUNS", "LEAVES AT", "LAST SEQ"}}
	for _, branch := range branches {
		rows = append(rows, []string{
			headMark(branch.IsHead), branch.RunID, cli.StatusText(branch.Status), fmt.Sprint(branch.Runs), cli.OrDash(branch.ForkedFrom),
			lastSeqText(branch.LastSeq),
		})
	}
	return p.PrintTable(rows)
}

func headMark(isHead bool) string {
	if isHead {
		return "*"
	}
	return " "
}

// lastSeqText formats the last seq of a run. A run in progress has none yet.
func lastSeqText(seq int64) string {
	if seq == 0 {
		return "…"
	}
	return fmt.Sprint(seq)
}
