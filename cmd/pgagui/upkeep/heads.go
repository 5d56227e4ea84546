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

	"github.com/pgagui/pgagui/internal/eventfile"
	"github.com/pgagui/pgagui/jobs"
)

// heads prints the heads of a scope, or of all.
func (p *program) heads(ctx context.Context, scope *string) error {
	out := bufio.NewWriter(p.Out)
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	return errors.Join(p.EachPool(ctx, 1, func(ctx context.Context, pool *pgxpool.Pool) error {
		return jobs.Heads(ctx, pool, scope, func(head jobs.Head) error { return lines.Encode(head) })
	}), out.Flush())
}

// readHeads reads the output of verify --print-heads.
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
			return nil, &eventfile.Error{File: name, Line: number, Err: fmt.Errorf(`%w: use the output of "pgagui verify --print-heads"`, err)}
		}
		heads = append(heads, head)
	}
	return heads, lines.Err()
}
