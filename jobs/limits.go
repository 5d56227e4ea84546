package jobs

import "github.com/pgagui/pgagui/compaction"

// newFold returns the fold of nothing, under limits.
func newFold(limits compaction.Limits) *compaction.Fold {
	fold := compaction.New()
	fold.SetLimits(limits)
	return fold
}
