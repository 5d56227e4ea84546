package jobs

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/db"
)

// applyRules does what an upgrade that changed the rules of folds has left to do: it corrects the statuses of runs, and drops the
// snapshots of older rules. Without such an upgrade it is one query.
func applyRules(ctx context.Context, pool *pgxpool.Pool, stop limits) error {
	for {
		threads, err := db.New(pool).ApplyRules(ctx)
		if err != nil || threads == 0 || stop.reached(ctx, 0) != "" {
			return err
		}
	}
}
