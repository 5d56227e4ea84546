package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui/jobs"
)

func (p *program) headsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "heads",
		Short: "Print the heads of chained logs, for somebody else to keep",
		Long: `Prints the head of each thread whose log is chained (agui.enable_chain): the seq of its last event, and the hash of its last link. Each is a
line of JSON. Without --scope the threads are those of all scopes.

Keep them where who may change the database cannot: "pgagui verify --chain --heads FILE" then finds whatever was changed up to there.`,
		Example: `  pgagui heads > heads-of-monday.ndjson`,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			var scope *string
			if scopeIsGiven(command) {
				scope = &p.scope
			}
			pool, err := p.connect(command.Context(), 1)
			if err != nil {
				return err
			}
			defer pool.Close()
			out := bufio.NewWriter(p.out)
			lines := json.NewEncoder(out)
			lines.SetEscapeHTML(false)
			if err := jobs.Heads(command.Context(), pool, scope, func(head jobs.Head) error { return lines.Encode(head) }); err != nil {
				return err
			}
			return out.Flush()
		},
	}
}

// readHeads reads what the command heads printed.
func (p *program) readHeads(path string) ([]jobs.Head, error) {
	input := io.NopCloser(p.in)
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		input = file
	}
	defer input.Close()
	var heads []jobs.Head
	lines := json.NewDecoder(bufio.NewReader(input))
	for {
		var head jobs.Head
		err := lines.Decode(&head)
		if err == io.EOF {
			return heads, nil
		}
		if hash, invalid := hex.DecodeString(head.Hash); err == nil && (invalid != nil || len(hash) != 32 || head.ThreadID == "" || head.Seq < 1) {
			err = fmt.Errorf("it needs threadId, seq and a hash of 64 hexadecimal digits")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: head %d: %w: give a file that \"pgagui heads\" wrote", path, len(heads)+1, err)
		}
		heads = append(heads, head)
	}
}
