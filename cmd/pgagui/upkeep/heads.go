package upkeep

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/internal/eventfile"
	"github.com/pgagui/pgagui/jobs"
)

func (p *program) headsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "heads",
		Short: "Print the head hashes of chained logs, to keep outside the database",
		Long: `Prints the head of each thread whose log is chained (agui.enable_chain), one JSON object a line: the
seq of the last event and the hash of the last link. Without --scope it prints the threads of all
scopes.

Keep the output at a place where a person who can change the database cannot write. "pgagui verify
--chain --heads FILE" then finds every change to the part of the log that a head covers.`,
		Example: `  pgagui heads > heads-of-monday.ndjson
  pgagui verify --chain --heads heads-of-monday.ndjson`,
		Args: cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			var scope *string
			if cli.ScopeIsGiven(command) {
				scope = &p.Scope
			}
			out := bufio.NewWriter(p.Out)
			lines := json.NewEncoder(out)
			lines.SetEscapeHTML(false)
			return errors.Join(p.EachPool(command.Context(), 1, func(ctx context.Context, pool *pgxpool.Pool) error {
				return jobs.Heads(ctx, pool, scope, func(head jobs.Head) error { return lines.Encode(head) })
			}), out.Flush())
		},
	}
}

// readHeads reads the output of the command heads.
func (p *program) readHeads(path string) ([]jobs.Head, error) {
	content, name, err := p.Open(path)
	if err != nil {
		return nil, err
	}
	defer content.Close()
	var heads []jobs.Head
	lines := bufio.NewScanner(content)
	for number := 1; lines.Scan(); number++ {
		var head jobs.Head
		err := json.Unmarshal(lines.Bytes(), &head)
		if hash, invalid := hex.DecodeString(head.Hash); err == nil && (invalid != nil || len(hash) != sha256.Size || head.ThreadID == "" || head.Seq < 1) {
			err = errors.New("not a head (expected a threadId, a seq and a hash of 64 hexadecimal digits)")
		}
		if err != nil {
			return nil, &eventfile.Error{File: name, Line: number, Err: fmt.Errorf(`%w: use the output of "pgagui heads"`, err)}
		}
		heads = append(heads, head)
	}
	return heads, lines.Err()
}
