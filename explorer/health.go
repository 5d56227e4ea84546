package explorer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/jobs"
	"github.com/pgagui/pgagui/transcript"
)

type healthPage struct {
	Report    pgagui.Report
	Chart     chart
	Consumers []pgagui.ConsumerPlace
	Stale     []pgagui.Thread
	Failed    []pgagui.ListedRun
	// Database is nil if the reader may not know.
	Database *databaseHealth
}

type databaseHealth struct {
	jobs.Stats
	Quarantine []quarantined
	Findings   []Finding
	Examined   string // why there are no findings
}

// quarantined is a row of agui.quarantine.
type quarantined struct {
	Job, ThreadID, RunID, Scope string
	Attempts                    int32
	Error                       string
	FailedAt, NextAttemptAt     time.Time
}

// chart is the runs by day.
type chart struct {
	Bars  []bar
	Most  int64
	Width int
}

type bar struct {
	X, Y, Height          int
	FailedY, FailedHeight int
	Day                   string
	Runs, Failed          int64
}

// reportTime is how far back the report goes.
const reportTime = 7 * 24 * time.Hour

// showHealth shows how the conversations of the scope are, and the database.
func (h *Handler) showHealth(q *request) error {
	var body healthPage
	group, ctx := errgroup.WithContext(q.Context())
	group.Go(func() (err error) {
		body.Report, err = q.store.Facts().Report(ctx, time.Now().Add(-reportTime))
		return err
	})
	group.Go(func() (err error) {
		body.Consumers, err = q.store.Consumers(ctx)
		return err
	})
	group.Go(func() error {
		listed, err := q.store.Threads(ctx, pgagui.ThreadsOptions{Stale: true, Archived: pgagui.WithArchived, Limit: 20})
		body.Stale = listed.Threads
		return err
	})
	group.Go(func() error {
		listed, err := q.store.ListRuns(ctx, pgagui.ListRunsOptions{Since: time.Now().Add(-reportTime), Limit: 10})
		body.Failed = listed.Runs
		return err
	})
	if h.options.Database != nil {
		body.Database = &databaseHealth{}
		group.Go(func() error { return h.readDatabase(ctx, body.Database) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	kept := body.Consumers[:0]
	for _, consumer := range body.Consumers { // those of other scopes are for those who may see the database
		if body.Database != nil || !consumer.AllScopes && consumer.Scope == q.identity.Scope {
			kept = append(kept, consumer)
		}
	}
	body.Consumers = kept
	body.Chart = chartOf(body.Report.Days, body.Report.Since)
	return q.write("health", "Health", body)
}

func (h *Handler) readDatabase(ctx context.Context, of *databaseHealth) (err error) {
	if of.Stats, err = jobs.ReadStats(ctx, h.options.Database, jobs.StatsOptions{}); err != nil {
		return err
	}
	rows, err := h.options.Database.Query(ctx, `
		select job, scope, thread_id, run_id, attempts, coalesce(error, cause, ''), failed_at, next_attempt_at
		from agui.quarantine
		order by failed_at desc
		limit 50`)
	if err != nil {
		return err
	}
	of.Quarantine, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (one quarantined, err error) {
		err = row.Scan(&one.Job, &one.Scope, &one.ThreadID, &one.RunID, &one.Attempts, &one.Error, &one.FailedAt, &one.NextAttemptAt)
		return one, err
	})
	if err != nil || h.options.Examine == nil {
		return err
	}
	if of.Findings, err = h.options.Examine(ctx); err != nil && ctx.Err() == nil {
		of.Examined, err = err.Error(), nil
	}
	return err
}

// Remedy says what to do about a run in quarantine.
func (r quarantined) Remedy() string {
	switch r.Job {
	case "compact":
		return fmt.Sprintf("The job tries it again %s. pgagui verify %q says whether the log is sound; if a limit stops it, raise the setting.", untilText(r.NextAttemptAt), r.ThreadID)
	}
	return fmt.Sprintf("The job tries it again %s.", untilText(r.NextAttemptAt))
}

func untilText(at time.Time) string {
	if left := time.Until(at); left > 0 {
		return "in " + durationText(left.Round(time.Second))
	}
	return "at its next run"
}

const (
	barWidth, chartHeight = 60, 120
)

// chartOf draws the runs by day, of all days until now.
func chartOf(facts []pgagui.DayFacts, since time.Time) (c chart) {
	if len(facts) == 0 {
		return c
	}
	byDay := map[string]pgagui.DayFacts{}
	for _, day := range facts {
		byDay[day.Day] = day
	}
	var days []pgagui.DayFacts
	last := facts[len(facts)-1].Day
	for at := since; len(days) <= 40; at = at.AddDate(0, 0, 1) {
		day := at.Format(time.DateOnly)
		if fact, isThere := byDay[day]; isThere {
			days = append(days, fact)
		} else {
			days = append(days, pgagui.DayFacts{Day: day})
		}
		if day >= last && at.AddDate(0, 0, 1).After(time.Now()) {
			break
		}
	}
	for _, day := range days {
		c.Most = max(c.Most, day.Runs)
	}
	for i, day := range days {
		height := func(runs int64) int {
			if runs == 0 {
				return 0
			}
			return max(int(runs*chartHeight/max(c.Most, 1)), 2)
		}
		all, failed := height(day.Runs), height(day.Failed)
		c.Bars = append(c.Bars, bar{
			X: i * barWidth, Y: chartHeight - all, Height: all, FailedY: chartHeight - failed, FailedHeight: failed, Day: day.Day, Runs: day.Runs, Failed: day.Failed,
		})
	}
	c.Width = max(len(days), 7) * barWidth
	return c
}

type waitingPage struct {
	Threads []waitingThread
	Next    string
}

// waitingThread is a thread whose head waits for answers, or for the results of tool calls.
type waitingThread struct {
	pgagui.Thread
	Questions []question
	Calls     []pgagui.WaitingInterrupt
}

type question struct {
	pgagui.Interrupt
	Text string
}

// waitingPerPage is how many threads a page of the inbox has: it reads the interrupts of each.
const waitingPerPage = 25

// mostWaiting is how many questions are read for the tool calls that wait. Behind them a page has threads without their calls.
const mostWaiting = 1000

// showWaiting lists the threads that wait for an answer.
func (h *Handler) showWaiting(q *request) error {
	listed, err := q.store.Threads(q.Context(), pgagui.ThreadsOptions{
		Status: pgagui.Interrupted, HeadOnly: true, Cursor: q.text("cursor"), Limit: waitingPerPage,
	})
	if err != nil {
		return err
	}
	waiting, err := q.store.Facts().Waiting(q.Context(), pgagui.WaitingOptions{Limit: mostWaiting})
	if err != nil {
		return err
	}
	calls := map[string][]pgagui.WaitingInterrupt{}
	for _, one := range waiting {
		if one.Kind == "call" {
			calls[one.ThreadID] = append(calls[one.ThreadID], one)
		}
	}
	body := waitingPage{}
	for _, thread := range listed.Threads {
		questions, err := q.readQuestions(thread)
		if err != nil && !errors.Is(err, pgagui.ErrNotFound) && !errors.Is(err, pgagui.ErrQuarantined) && !errors.Is(err, pgagui.ErrFoldLimit) {
			return err
		}
		body.Threads = append(body.Threads, waitingThread{thread, questions, calls[thread.ID]})
	}
	if listed.HasMore {
		body.Next = link("waiting", "cursor", listed.Cursor)
	}
	return q.write("waiting", "Waiting", body)
}

// readQuestions returns what the head of a thread asks. It reads the conversation only if a question is about a tool call, and says no more.
func (q *request) readQuestions(thread pgagui.Thread) (questions []question, err error) {
	at := pgagui.At{RunID: thread.HeadRunID}
	interrupts, err := q.store.Interrupts(q.Context(), thread.ID, at)
	if err != nil {
		return nil, err
	}
	var messages []json.RawMessage
	if slices.ContainsFunc(interrupts, func(one pgagui.Interrupt) bool { return one.Message == "" && one.ToolCallID != "" }) {
		restored, err := q.store.Restore(q.Context(), thread.ID, at)
		if err != nil {
			return nil, err
		}
		messages = restored.Messages
	}
	for _, one := range interrupts {
		questions = append(questions, question{one, transcript.Question(one.JSON, messages)})
	}
	return questions, nil
}
