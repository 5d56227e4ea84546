package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/db"
)

// RetentionAction is what a rule does to a thread.
type RetentionAction string

const (
	// RetainArchived makes lists leave the thread out.
	RetainArchived RetentionAction = "archive"
	// RetainWithoutCheckpoints removes the checkpoints of the thread. Its log stays.
	RetainWithoutCheckpoints RetentionAction = "remove_checkpoints"
	// RetainNothing erases the thread.
	RetainNothing RetentionAction = "erase"
)

// RetentionRule says what [Retain] does to threads without activity. For each action, the rule of a
// scope comes before the rule for all scopes.
type RetentionRule struct {
	// Scope has the threads that the rule is for. AllScopes: it is for those of all scopes.
	Scope     string          `json:"scope"`
	AllScopes bool            `json:"allScopes"`
	Action    RetentionAction `json:"action"`
	// OlderThan is how long nothing was appended to a thread or saved in it, as PostgreSQL writes an
	// interval: 90 days, 1 year. Empty: the action is never done.
	OlderThan string `json:"olderThan"`
	// SetAt and SetBy say when the rule was set, and by which role.
	SetAt time.Time `json:"setAt"`
	SetBy string    `json:"setBy"`
}

// scopeOf is the argument scope of functions for one scope or for all.
func scopeOf(scope string, all bool) *string {
	if all {
		return nil
	}
	return &scope
}

// SetRetention sets a rule. It needs the rights of agui_maintainer.
//
// Errors: pgagui.ErrInvalidArgument, pgagui.ErrPermissionDenied.
func SetRetention(ctx context.Context, pool *pgxpool.Pool, rule RetentionRule) error {
	return pgagui.ErrorOf(db.New(pool).SetRetention(ctx, db.SetRetentionParams{
		Action: string(rule.Action), OlderThan: orNull(rule.OlderThan), Scope: scopeOf(rule.Scope, rule.AllScopes),
	}))
}

// RemoveRetention removes the rule of an action, and reports whether there was one. It needs the
// rights of agui_maintainer.
//
// Errors: pgagui.ErrPermissionDenied.
func RemoveRetention(ctx context.Context, pool *pgxpool.Pool, rule RetentionRule) (wasSet bool, err error) {
	wasSet, err = db.New(pool).RemoveRetention(ctx, db.RemoveRetentionParams{
		Action: string(rule.Action), Scope: scopeOf(rule.Scope, rule.AllScopes),
	})
	return wasSet, pgagui.ErrorOf(err)
}

// RetentionRules returns the rules that the role may see.
func RetentionRules(ctx context.Context, pool *pgxpool.Pool) ([]RetentionRule, error) {
	rows, err := db.New(pool).RetentionRules(ctx)
	rules := make([]RetentionRule, len(rows))
	for i, row := range rows {
		rules[i] = RetentionRule{row.Scope, row.IsAll, RetentionAction(row.Action), row.OlderThan, row.SetAt, row.SetBy}
	}
	return rules, pgagui.ErrorOf(err)
}

// RetainOptions are the settings of [Retain].
type RetainOptions struct {
	// DryRun changes nothing and only says what would be done.
	DryRun bool
	// MaxThreads ends the job after this number of actions; 0 means no limit.
	MaxThreads int
	// MaxTime ends the job after this time; 0 means no limit.
	MaxTime time.Duration
	// Each, if set, is called after each action; with DryRun for each that would be done, and for
	// those that are not.
	Each func(RetainedThread)
}

// RetainedThread is an action that [Retain] did to a thread.
type RetainedThread struct {
	Scope    string          `json:"scope"`
	ThreadID string          `json:"threadId"`
	Action   RetentionAction `json:"action"`
	// OlderThan is that of the rule.
	OlderThan string `json:"olderThan"`
	// LastActivityAt is when something was last appended to the thread or saved in it.
	LastActivityAt time.Time `json:"lastActivityAt"`
	Events         int64     `json:"events"`
	// Bytes is the stored size of the log, as far as compaction has measured it.
	Bytes int64 `json:"bytes"`
	// KeptBecause says why the action is not done: held, or in progress. Empty: it is.
	KeptBecause string `json:"keptBecause,omitempty"`
}

// RetainedByRule counts the threads to which a rule applied.
type RetainedByRule struct {
	Scope     string          `json:"scope"`
	AllScopes bool            `json:"allScopes"`
	Action    RetentionAction `json:"action"`
	OlderThan string          `json:"olderThan"`
	Threads   int             `json:"threads"`
	Events    int64           `json:"events"`
	Bytes     int64           `json:"bytes"`
	// Held and InProgress count the threads that are older and stay, because they are held or in
	// progress.
	Held       int `json:"held"`
	InProgress int `json:"inProgress"`
}

// Retained is the result of [Retain].
type Retained struct {
	// Rules are those that applied to a thread.
	Rules []*RetainedByRule `json:"rules"`
	// Threads counts the actions that were done.
	Threads int `json:"threads"`
	// DryRun reports that nothing was changed.
	DryRun bool `json:"dryRun"`
	// Busy is the number of actions that were left because other transactions held the threads.
	Busy int `json:"busy,omitempty"`
	// Stopped says why the job ended with work left; empty if it did all work.
	Stopped StopReason `json:"stopped,omitempty"`
	// Duration is how long the job took.
	Duration time.Duration `json:"nanoseconds"`
}

// LogValue returns the counts as a group for slog.
func (r Retained) LogValue() slog.Value {
	counts := map[RetentionAction]int{}
	for _, rule := range r.Rules {
		counts[rule.Action] += rule.Threads
	}
	return slog.GroupValue(
		slog.Int("archived", counts[RetainArchived]), slog.Int("withoutCheckpoints", counts[RetainWithoutCheckpoints]),
		slog.Int("erased", counts[RetainNothing]), slog.String("stopped", string(r.Stopped)),
	)
}

// rule returns the counts of the rule that applies to a thread.
func (r *Retained) rule(due db.ThreadsDueRow) *RetainedByRule {
	scope := due.Scope
	if due.IsAll {
		scope = ""
	}
	for _, known := range r.Rules {
		if known.Scope == scope && known.AllScopes == due.IsAll && known.Action == RetentionAction(due.Action) {
			return known
		}
	}
	added := &RetainedByRule{Scope: scope, AllScopes: due.IsAll, Action: RetentionAction(due.Action), OlderThan: due.OlderThan}
	r.Rules = append(r.Rules, added)
	return added
}

// Retain does what the rules of [SetRetention] say, to the threads for which it is due, one
// transaction each. Threads that are held (agui.set_hold) are only archived, those in progress are
// left. A thread that becomes active meanwhile stays as it is: the rule is evaluated once more under
// its lock. Without rules Retain does nothing; with rules it needs the rights of agui_maintainer.
//
// A thread that another transaction holds is retried once, after all others. A thread that fails
// does not stop the others; Retain then returns a [*RunsLeftError] at the end.
func Retain(ctx context.Context, pool *pgxpool.Pool, options RetainOptions) (done Retained, err error) {
	begin := time.Now()
	done.DryRun, done.Rules = options.DryRun, []*RetainedByRule{}
	defer func() { done.Duration = time.Since(begin) }()
	queries := db.New(pool)
	stop := limits{begin, options.MaxTime, options.MaxThreads}
	reached := func() StopReason { return stop.reached(ctx, done.Threads) }
	threadsOf := func(after pgtype.UUID, rows int32) ([]db.ThreadsDueRow, error) {
		return queries.ThreadsDue(ctx, db.ThreadsDueParams{After: after, Page: rows})
	}
	keyOf := func(due db.ThreadsDueRow) pgtype.UUID { return due.ThreadKey }
	done.Stopped, done.Busy, err = eachThread(ctx, reached, threadsOf, keyOf, func(due db.ThreadsDueRow) error {
		rule := done.rule(due)
		isDone := due.KeptBecause == ""
		switch {
		case due.KeptBecause == "held":
			rule.Held++
		case !isDone:
			rule.InProgress++
		case !options.DryRun:
			var err error
			if isDone, err = queries.RetainThread(ctx, db.RetainThreadParams{ThreadKey: due.ThreadKey, Action: due.Action}); err != nil {
				return fmt.Errorf("%s thread %q: %w", due.Action, due.ThreadID, err)
			}
		}
		if isDone {
			done.Threads++
			rule.Threads++
			rule.Events += due.Events
			rule.Bytes += due.LogBytes
		}
		if options.Each != nil && (isDone || options.DryRun) {
			options.Each(RetainedThread{
				Scope: due.Scope, ThreadID: due.ThreadID, Action: RetentionAction(due.Action), OlderThan: due.OlderThan,
				LastActivityAt: due.LastNewsAt, Events: due.Events, Bytes: due.LogBytes, KeptBecause: due.KeptBecause,
			})
		}
		return nil
	})
	return done, err
}
