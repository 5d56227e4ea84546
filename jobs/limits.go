package jobs

import (
	"context"

	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/db"
)

// readLimits reads the limits of the database, so that a fold here fails the patches that fail in SQL.
func readLimits(ctx context.Context, queries *db.Queries) (compaction.Limits, error) {
	row, err := queries.PatchLimits(ctx)
	return compaction.Limits{
		DocumentBytes:     row.DocumentBytes,
		DocumentDepth:     int(row.DocumentDepth),
		PatchOperations:   int(row.PatchOperations),
		PatchCopiedBytes:  row.PatchCopiedBytes,
		PatchShiftedItems: row.PatchShiftedItems,
	}, err
}

// newFold returns the fold of nothing, under limits.
func newFold(limits compaction.Limits) *compaction.Fold {
	fold := compaction.New()
	fold.SetLimits(limits)
	return fold
}
