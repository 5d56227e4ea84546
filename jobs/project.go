package jobs

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui/db"
)

// ProjectOptions are the settings of [Project]. The zero value projects all that has changed.
type ProjectOptions struct {
	// Rebuild makes the job read all runs, not only those that were changed since its last call. It needs the rights of agui_maintainer.
	Rebuild bool
	// Retry makes the job retry the runs in quarantine at once.
	Retry bool
	// MaxTime ends the job after this time; 0 means no limit.
	MaxTime time.Duration
	// Progress, if set, is called after each group of runs with the totals so far.
	Progress func(Projected)
}

// Projected is the result of [Project].
type Projected struct {
	// Runs is the number of runs that were read.
	Runs int `json:"runs"`
	// Quarantined is the number of runs at which the job failed and that it retries later (agui.quarantine).
	Quarantined int64 `json:"quarantined,omitempty"`
	// Stopped says why the job ended with work left; empty if it did all work.
	Stopped StopReason `json:"stopped,omitempty"`
	// Duration is how long the job took.
	Duration time.Duration `json:"nanoseconds"`
}

// LogValue returns the counts as a group for slog.
func (p Projected) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("runs", p.Runs), slog.Int64("quarantined", p.Quarantined), slog.String("stopped", string(p.Stopped)))
}

// Project keeps the facts about runs (the views agui.run_fact, agui.tool_fact, agui.interrupt_fact and agui.usage_fact): it reads the runs,
// of all scopes, that have ended or changed since its last call, and commits after each group. The first call reads all runs. A run that
// fails goes into quarantine and does not stop the others. It is agui.project() for programs in Go, and needs the rights of agui_worker.
func Project(ctx context.Context, pool *pgxpool.Pool, options ProjectOptions) (done Projected, err error) {
	begin := time.Now()
	defer func() { done.Duration = time.Since(begin) }()
	stop := limits{begin, options.MaxTime, 0}
	queries := db.New(pool)
	if options.Rebuild {
		if err := queries.RebuildFacts(ctx); err != nil {
			return done, err
		}
	}
	if options.Retry {
		if _, err := queries.Retry(ctx, projectJobName); err != nil {
			return done, err
		}
	}
	if err := applyRules(ctx, pool, stop); err != nil {
		return done, err
	}
	for {
		// One step is always done, so that each call makes progress.
		var settled int32
		runs, err := inStep(ctx, pool, func(queries *db.Queries) (runs int32, err error) {
			if runs, err = queries.ProjectStep(ctx); runs == 0 && err == nil {
				settled, err = queries.SettleCalls(ctx)
			}
			return runs, err
		})
		if err != nil {
			return done, err
		}
		if runs+settled == 0 {
			break
		}
		done.Runs += int(runs)
		if options.Progress != nil {
			options.Progress(done)
		}
		if done.Stopped = stop.reached(ctx, done.Runs); done.Stopped != "" {
			break
		}
	}
	done.Quarantined, err = queries.Quarantined(ctx, projectJobName)
	return done, err
}

// projectJobName is the name of the job in its notes.
const projectJobName = "project"
