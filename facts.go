package pgagui

import (
	"context"
	"time"

	"github.com/pgagui/pgagui/db"
)

// Facts answers questions about all conversations. It reads what the job agui.project() keeps (jobs.Project, pgagui project), as of its
// last call, and no log.
type Facts struct {
	store *Store
	scope *string
}

// Facts returns the questions about the conversations of the Store's scope.
func (s *Store) Facts() Facts { return Facts{s, &s.scope} }

// FactsOfAllScopes returns the questions about the conversations of all scopes that the role sees.
func (s *Store) FactsOfAllScopes() Facts { return Facts{s, nil} }

// Period is a time from Since on and before Until. A zero Since means always, a zero Until until now.
type Period struct{ Since, Until time.Time }

func (p Period) bounds() (since, until *time.Time) {
	if !p.Since.IsZero() {
		since = &p.Since
	}
	if !p.Until.IsZero() {
		until = &p.Until
	}
	return since, until
}

// WaitingOptions belong to Waiting.
type WaitingOptions struct {
	// Agent is the agent of the threads. Empty: all agents.
	Agent string
	// Limit is how many interrupts are returned at most; 0: 100.
	Limit int
}

// WaitingInterrupt is an interrupt that waits for an answer.
type WaitingInterrupt struct {
	Scope       string    `json:"scope"`
	ThreadID    string    `json:"threadId"`
	RunID       string    `json:"runId"`
	Agent       string    `json:"agent,omitempty"`
	InterruptID string    `json:"interruptId,omitempty"`
	Reason      string    `json:"reason,omitempty"`
	Message     string    `json:"message,omitempty"` // its first 1000 characters
	ToolCallID  string    `json:"toolCallId,omitempty"`
	AskedAt     time.Time `json:"askedAt"`
	// ExpiresAt is until when an answer counts. Zero: no limit.
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
}

// Waiting returns the interrupts that wait for an answer, those asked first first. A conversation in which another run was begun does not
// wait.
func (f Facts) Waiting(ctx context.Context, options WaitingOptions) ([]WaitingInterrupt, error) {
	rows, err := f.store.queries.Waiting(ctx, db.WaitingParams{MaxRows: pageSize(options.Limit, 100), Agent: orNull(options.Agent), Scope: f.scope})
	if err != nil {
		return nil, ErrorOf(err)
	}
	waiting := make([]WaitingInterrupt, len(rows))
	for i, row := range rows {
		waiting[i] = WaitingInterrupt(row)
	}
	return waiting, nil
}

// ToolFacts are the calls of a tool.
type ToolFacts struct {
	Tool    string `json:"tool"`
	Calls   int64  `json:"calls"`
	Failed  int64  `json:"failed"`
	CutOff  int64  `json:"cutOff"`
	Waiting int64  `json:"waiting"`
	// MedianDuration and P95Duration are within which half and 95 of 100 results came; nil: there are none.
	MedianDuration *time.Duration `json:"medianNanoseconds,omitempty"`
	P95Duration    *time.Duration `json:"p95Nanoseconds,omitempty"`
	// LastError is the error of the last call that failed, its first 1000 characters.
	LastError string `json:"lastError,omitempty"`
}

// Tools returns the tools that runs called in a period, those with most failures first.
func (f Facts) Tools(ctx context.Context, period Period) ([]ToolFacts, error) {
	since, until := period.bounds()
	rows, err := f.store.queries.ToolReport(ctx, db.ToolReportParams{Since: since, Until: until, Scope: f.scope})
	if err != nil {
		return nil, ErrorOf(err)
	}
	tools := make([]ToolFacts, len(rows))
	for i, row := range rows {
		tools[i] = ToolFacts{
			Tool: row.Tool, Calls: row.Calls, Failed: row.Failed, CutOff: row.CutOff, Waiting: row.Waiting,
			MedianDuration: seconds(row.MedianDuration), P95Duration: seconds(row.P95Duration), LastError: row.LastError,
		}
	}
	return tools, nil
}

// AgentFacts are the runs of an agent.
type AgentFacts struct {
	Agent string `json:"agent,omitempty"` // empty: threads without an agent
	Runs  int64  `json:"runs"`
	// The runs by status.
	Running     int64 `json:"running"`
	Finished    int64 `json:"finished"`
	Interrupted int64 `json:"interrupted"`
	Cancelled   int64 `json:"cancelled"`
	Failed      int64 `json:"failed"`
	CutOff      int64 `json:"cutOff"`
	// How long runs took, and how long it took until the first piece of text; nil: there are none.
	MedianDuration   *time.Duration `json:"medianNanoseconds,omitempty"`
	P95Duration      *time.Duration `json:"p95Nanoseconds,omitempty"`
	MedianFirstToken *time.Duration `json:"medianFirstTokenNanoseconds,omitempty"`
	P95FirstToken    *time.Duration `json:"p95FirstTokenNanoseconds,omitempty"`
}

// Agents returns the agents whose runs began in a period, those with most runs first.
func (f Facts) Agents(ctx context.Context, period Period) ([]AgentFacts, error) {
	since, until := period.bounds()
	rows, err := f.store.queries.AgentReport(ctx, db.AgentReportParams{Since: since, Until: until, Scope: f.scope})
	if err != nil {
		return nil, ErrorOf(err)
	}
	agents := make([]AgentFacts, len(rows))
	for i, row := range rows {
		agents[i] = AgentFacts{
			Agent: row.Agent, Runs: row.Runs, Running: row.Running, Finished: row.Finished, Interrupted: row.Interrupted,
			Cancelled: row.Cancelled, Failed: row.Failed, CutOff: row.CutOff,
			MedianDuration: seconds(row.MedianDuration), P95Duration: seconds(row.P95Duration),
			MedianFirstToken: seconds(row.MedianFirstToken), P95FirstToken: seconds(row.P95FirstToken),
		}
	}
	return agents, nil
}

// ModelFacts are the tokens that runs used of a model, in the accounting of [ModelUsage].
type ModelFacts struct {
	Provider              string  `json:"provider,omitempty"`
	Model                 string  `json:"model,omitempty"`
	Runs                  int64   `json:"runs"`
	InputTokens           float64 `json:"inputTokens"`
	OutputTokens          float64 `json:"outputTokens"`
	TotalTokens           float64 `json:"totalTokens"`
	ReasoningTokens       float64 `json:"reasoningTokens"`
	CachedInputTokens     float64 `json:"cachedInputTokens"`
	CacheWriteInputTokens float64 `json:"cacheWriteInputTokens"`
}

// Models returns the models that runs used which ended in a period, those with most tokens first.
func (f Facts) Models(ctx context.Context, period Period) ([]ModelFacts, error) {
	since, until := period.bounds()
	rows, err := f.store.queries.ModelReport(ctx, db.ModelReportParams{Since: since, Until: until, Scope: f.scope})
	if err != nil {
		return nil, ErrorOf(err)
	}
	models := make([]ModelFacts, len(rows))
	for i, row := range rows {
		models[i] = ModelFacts(row)
	}
	return models, nil
}

// DayFacts are the runs that began on a day.
type DayFacts struct {
	Day     string  `json:"day"` // as 2026-11-26, in the time zone of the session
	Threads int64   `json:"threads"`
	Runs    int64   `json:"runs"`
	Failed  int64   `json:"failed"` // or cut off
	Events  float64 `json:"events"`
	Bytes   float64 `json:"bytes"` // of the text of the events
}

// Days returns the days of a period on which runs began.
func (f Facts) Days(ctx context.Context, period Period) ([]DayFacts, error) {
	since, until := period.bounds()
	rows, err := f.store.queries.DayReport(ctx, db.DayReportParams{Since: since, Until: until, Scope: f.scope})
	if err != nil {
		return nil, ErrorOf(err)
	}
	days := make([]DayFacts, len(rows))
	for i, row := range rows {
		days[i] = DayFacts(row)
	}
	return days, nil
}

// Report is what happened since a time.
type Report struct {
	Since   time.Time          `json:"since"`
	Days    []DayFacts         `json:"days"`
	Agents  []AgentFacts       `json:"agents"`
	Tools   []ToolFacts        `json:"tools"`
	Models  []ModelFacts       `json:"models"`
	Waiting []WaitingInterrupt `json:"waiting"` // now, at most 100
}

// Report answers all questions at once.
func (f Facts) Report(ctx context.Context, since time.Time) (report Report, err error) {
	period := Period{Since: since}
	report.Since = since
	if report.Days, err = f.Days(ctx, period); err != nil {
		return Report{}, err
	}
	if report.Agents, err = f.Agents(ctx, period); err != nil {
		return Report{}, err
	}
	if report.Tools, err = f.Tools(ctx, period); err != nil {
		return Report{}, err
	}
	if report.Models, err = f.Models(ctx, period); err != nil {
		return Report{}, err
	}
	report.Waiting, err = f.Waiting(ctx, WaitingOptions{})
	return report, err
}

// seconds is a time in seconds; nil if it is negative, which stands for none.
func seconds(n float64) *time.Duration {
	if n < 0 {
		return nil
	}
	return new(time.Duration(n * float64(time.Second)))
}
