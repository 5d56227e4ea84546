package pgagui

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"time"

	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/live"
)

// Facts answers questions about all conversations. It reads what the job agui.project() keeps (jobs.Project, pgagui job project), as of its
// last call, and no log.
//
// In a cluster the answer is that of all nodes. If some do not answer, it is that of the others, with an *UnansweredError. Counts are sums.
// Of medians and 95th percentiles it is the greatest of the nodes: at least half, or 95 of 100, of all took no longer.
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

// WaitingOptions belong to Waiting.
type WaitingOptions struct {
	// Agent is the agent of the threads. Empty: all agents.
	Agent string
	// Limit is how many interrupts are returned at most; 0: 100.
	Limit int
}

// WaitingInterrupt is an interrupt that waits for an answer, or a tool call that waits for its result.
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
	// Kind is "interrupt", or "call" for a tool call: its run finished without a result of it, and the setting call_delay has passed since.
	Kind string `json:"kind"`
	// Tool is the function of the tool call.
	Tool string `json:"tool,omitempty"`
	// Arguments are those of the call that waits, their first 1000 characters.
	Arguments string `json:"arguments,omitempty"`
}

// Waiting returns the interrupts that wait for an answer and the tool calls that wait for a result, those asked first first. A conversation
// with a run in progress does not wait.
func (f Facts) Waiting(ctx context.Context, options WaitingOptions) ([]WaitingInterrupt, error) {
	limit := pageSize(options.Limit, 100)
	answers, err := gather(ctx, f.store, func(ctx context.Context, on part) ([]WaitingInterrupt, error) {
		rows, err := on.Waiting(ctx, db.WaitingParams{MaxRows: limit, Agent: orNull(options.Agent), Scope: f.scope})
		return listOf(rows, err, func(row db.WaitingRow) WaitingInterrupt { return WaitingInterrupt(row) })
	})
	type interrupt struct{ scope, threadID, runID, id, toolCallID string }
	waiting := mergeRows(answers, func(w WaitingInterrupt) interrupt {
		return interrupt{w.Scope, w.ThreadID, w.RunID, w.InterruptID, w.ToolCallID}
	}, func(*WaitingInterrupt, WaitingInterrupt) {}, func(a, b WaitingInterrupt) int {
		keyA, keyB := threadKey(live.Key{Scope: a.Scope, ThreadID: a.ThreadID}), threadKey(live.Key{Scope: b.Scope, ThreadID: b.ThreadID})
		return cmp.Or(a.AskedAt.Compare(b.AskedAt), bytes.Compare(keyA[:], keyB[:]))
	})
	if len(answers) > 1 {
		waiting = waiting[:min(len(waiting), int(limit))]
	}
	return waiting, err
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
	// LastError is the error of the last call that failed, its first 1000 characters; in a cluster, of the last one on a node.
	LastError string `json:"lastError,omitempty"`
}

// Tools returns the tools that runs called in a period, those with most failures first.
func (f Facts) Tools(ctx context.Context, period Period) ([]ToolFacts, error) {
	answers, err := gather(ctx, f.store, func(ctx context.Context, on part) ([]ToolFacts, error) {
		rows, err := on.ToolReport(ctx, db.ToolReportParams{Since: timeOrNull(period.Since), Until: timeOrNull(period.Until), Scope: f.scope})
		return listOf(rows, err, func(row db.ToolReportRow) ToolFacts {
			return ToolFacts{
				Tool: row.Tool, Calls: row.Calls, Failed: row.Failed, CutOff: row.CutOff, Waiting: row.Waiting,
				MedianDuration: seconds(row.MedianDuration), P95Duration: seconds(row.P95Duration), LastError: row.LastError,
			}
		})
	})
	return mergeRows(answers, func(tool ToolFacts) string { return tool.Tool }, func(sum *ToolFacts, tool ToolFacts) {
		sum.Calls += tool.Calls
		sum.Failed += tool.Failed
		sum.CutOff += tool.CutOff
		sum.Waiting += tool.Waiting
		sum.MedianDuration = longer(sum.MedianDuration, tool.MedianDuration)
		sum.P95Duration = longer(sum.P95Duration, tool.P95Duration)
		sum.LastError = cmp.Or(sum.LastError, tool.LastError)
	}, func(a, b ToolFacts) int {
		return cmp.Or(cmp.Compare(b.Failed, a.Failed), cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Tool, b.Tool))
	}), err
}

// longer is the longer one of two durations; nil: there is none.
func longer(a, b *time.Duration) *time.Duration {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
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
	answers, err := gather(ctx, f.store, func(ctx context.Context, on part) ([]AgentFacts, error) {
		rows, err := on.AgentReport(ctx, db.AgentReportParams{Since: timeOrNull(period.Since), Until: timeOrNull(period.Until), Scope: f.scope})
		return listOf(rows, err, func(row db.AgentReportRow) AgentFacts {
			return AgentFacts{
				Agent: row.Agent, Runs: row.Runs, Running: row.Running, Finished: row.Finished, Interrupted: row.Interrupted,
				Cancelled: row.Cancelled, Failed: row.Failed, CutOff: row.CutOff,
				MedianDuration: seconds(row.MedianDuration), P95Duration: seconds(row.P95Duration),
				MedianFirstToken: seconds(row.MedianFirstToken), P95FirstToken: seconds(row.P95FirstToken),
			}
		})
	})
	return mergeRows(answers, func(agent AgentFacts) string { return agent.Agent }, func(sum *AgentFacts, agent AgentFacts) {
		sum.Runs += agent.Runs
		sum.Running += agent.Running
		sum.Finished += agent.Finished
		sum.Interrupted += agent.Interrupted
		sum.Cancelled += agent.Cancelled
		sum.Failed += agent.Failed
		sum.CutOff += agent.CutOff
		sum.MedianDuration = longer(sum.MedianDuration, agent.MedianDuration)
		sum.P95Duration = longer(sum.P95Duration, agent.P95Duration)
		sum.MedianFirstToken = longer(sum.MedianFirstToken, agent.MedianFirstToken)
		sum.P95FirstToken = longer(sum.P95FirstToken, agent.P95FirstToken)
	}, func(a, b AgentFacts) int { return cmp.Or(cmp.Compare(b.Runs, a.Runs), emptyLast(a.Agent, b.Agent)) }), err
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
	answers, err := gather(ctx, f.store, func(ctx context.Context, on part) ([]ModelFacts, error) {
		rows, err := on.ModelReport(ctx, db.ModelReportParams{Since: timeOrNull(period.Since), Until: timeOrNull(period.Until), Scope: f.scope})
		return listOf(rows, err, func(row db.ModelReportRow) ModelFacts { return ModelFacts(row) })
	})
	return mergeRows(answers, func(model ModelFacts) [2]string { return [2]string{model.Provider, model.Model} }, func(sum *ModelFacts, model ModelFacts) {
		sum.Runs += model.Runs
		sum.InputTokens += model.InputTokens
		sum.OutputTokens += model.OutputTokens
		sum.TotalTokens += model.TotalTokens
		sum.ReasoningTokens += model.ReasoningTokens
		sum.CachedInputTokens += model.CachedInputTokens
		sum.CacheWriteInputTokens += model.CacheWriteInputTokens
	}, func(a, b ModelFacts) int {
		return cmp.Or(cmp.Compare(b.TotalTokens, a.TotalTokens), emptyLast(a.Provider, b.Provider), emptyLast(a.Model, b.Model))
	}), err
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
	answers, err := gather(ctx, f.store, func(ctx context.Context, on part) ([]DayFacts, error) {
		rows, err := on.DayReport(ctx, db.DayReportParams{Since: timeOrNull(period.Since), Until: timeOrNull(period.Until), Scope: f.scope})
		return listOf(rows, err, func(row db.DayReportRow) DayFacts { return DayFacts(row) })
	})
	return mergeRows(answers, func(day DayFacts) string { return day.Day }, func(sum *DayFacts, day DayFacts) {
		sum.Threads += day.Threads
		sum.Runs += day.Runs
		sum.Failed += day.Failed
		sum.Events += day.Events
		sum.Bytes += day.Bytes
	}, func(a, b DayFacts) int { return cmp.Compare(a.Day, b.Day) }), err
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
	var missing UnansweredError
	for _, ask := range []func() error{
		func() (err error) { report.Days, err = f.Days(ctx, period); return err },
		func() (err error) { report.Agents, err = f.Agents(ctx, period); return err },
		func() (err error) { report.Tools, err = f.Tools(ctx, period); return err },
		func() (err error) { report.Models, err = f.Models(ctx, period); return err },
		func() (err error) { report.Waiting, err = f.Waiting(ctx, WaitingOptions{}); return err },
	} {
		if err := missing.take(ask()); err != nil {
			return Report{}, err
		}
	}
	return report, missing.orNil()
}

// seconds is a time in seconds; nil if it is negative, which stands for none.
func seconds(n float64) *time.Duration {
	if n < 0 {
		return nil
	}
	return new(time.Duration(n * float64(time.Second)))
}

// SearchOptions belong to Search.
type SearchOptions struct {
	// Role is who said it: user, assistant or tool. Empty: any of them.
	Role string
	// Since leaves out what was said before. Zero: nothing.
	Since time.Time
	// AllScopes searches in all scopes that the role sees, not only in the Store's.
	AllScopes bool
	// Cursor goes on behind a page (FoundPage.Cursor).
	Cursor string
	// Limit is how many messages are returned at most, up to 1,000; 0: 20.
	Limit int
}

// FoundPage is a page of messages that Search found.
type FoundPage struct {
	Messages []FoundMessage `json:"messages"`
	// Cursor gives the next page (SearchOptions.Cursor). Empty: there is none.
	Cursor string `json:"cursor,omitempty"`
	// SearchedTo is set if more than 10,000 messages match: only those said since then were ranked.
	SearchedTo time.Time `json:"searchedTo,omitzero"`
}

// FoundMessage is a message whose text matches.
type FoundMessage struct {
	Scope    string `json:"scope"`
	ThreadID string `json:"threadId"`
	// RunID is the run that brought the text first, by an event or in its input.
	RunID     string `json:"runId"`
	MessageID string `json:"messageId,omitempty"`
	Role      string `json:"role"`
	// Seq and SaidAt are those of the event with which the message began, or of the first event of the run if its input brought it.
	Seq    int64     `json:"seq"`
	SaidAt time.Time `json:"saidAt"`
	// Rank is how well it matches, compared with others of the same query.
	Rank float32 `json:"rank"`
	// Snippet has the parts of the text that match, in pieces.
	Snippet []SnippetPart `json:"snippet"`
}

// SnippetPart is a piece of a snippet.
type SnippetPart struct {
	Text string `json:"text"`
	// IsMatch: the piece is a word that was searched.
	IsMatch bool `json:"isMatch,omitzero"`
}

// Search returns the messages whose texts match a query, the best first: words, "words in order", or, -not. It searches what users,
// assistants and tools said in all branches, as of the last call of the job that keeps the facts (agui.project).
//
// Errors: ErrSearchOff (see EnableSearch), ErrInvalidArgument (not a cursor), ErrLimitExceeded. In a cluster an *UnansweredError comes with
// the messages of the nodes that answered; later pages do not have the others.
func (s *Store) Search(ctx context.Context, query string, options SearchOptions) (FoundPage, error) {
	mark := rand.Text() // no text contains it
	begin, end := "\x02"+mark, "\x03"+mark
	parameters := db.SearchParams{
		Query: query, Role: orNull(options.Role), Since: timeOrNull(options.Since), Cursor: orNull(options.Cursor),
		MaxRows: pageSize(options.Limit, 20), Marks: []string{begin, end},
	}
	if !options.AllScopes {
		parameters.Scope = &s.scope
	}
	merged, err := gatherPage(ctx, s, foundOrder, int(parameters.MaxRows), func(ctx context.Context, on part) ([]db.SearchRow, error) {
		return on.Search(ctx, parameters)
	})
	page := FoundPage{Messages: make([]FoundMessage, len(merged.items)), Cursor: merged.next}
	for i, row := range merged.items {
		if row.SearchedTo.After(page.SearchedTo) { // of the node that was cut first
			page.SearchedTo = row.SearchedTo
		}
		page.Messages[i] = FoundMessage{
			Scope: row.Scope, ThreadID: row.ThreadID, RunID: row.RunID, MessageID: row.MessageID, Role: row.Role, Seq: row.Seq, SaidAt: row.SaidAt, Rank: row.Rank,
			Snippet: snippetParts(row.Snippet, begin, end),
		}
	}
	return page, err
}

var foundOrder = listOrder[db.SearchRow]{
	cursorOf: func(row db.SearchRow) string { return row.Cursor },
	keyOf:    func(row db.SearchRow) any { return row.Cursor },
	compare:  compareFound,
}

// snippetParts splits a snippet at its marks.
func snippetParts(snippet, begin, end string) (parts []SnippetPart) {
	for i, piece := range strings.Split(snippet, begin) {
		match, rest, isMarked := strings.Cut(piece, end)
		if i == 0 || !isMarked {
			match, rest = "", piece
		}
		for _, part := range []SnippetPart{{match, true}, {rest, false}} {
			if part.Text != "" {
				parts = append(parts, part)
			}
		}
	}
	return parts
}

// EnableSearch turns Search on for all scopes, or changes its language: a text search configuration of PostgreSQL, such as "english"
// ("simple": words as they are). The next calls of the job that keeps the facts index the texts of all messages. The role must be a
// maintainer.
//
// Errors: ErrInvalidArgument (unknown language), ErrPermissionDenied. In a cluster it is turned on on all nodes; after an *UnansweredError,
// repeat the call.
func (s *Store) EnableSearch(ctx context.Context, language string) error {
	return s.backend.each(ctx, s.caller, func(ctx context.Context, on part) error { return on.EnableSearch(ctx, language) })
}

// DisableSearch turns Search off and removes what it needs, in a cluster on all nodes. It reports whether it was on. After an
// *UnansweredError, repeat the call.
func (s *Store) DisableSearch(ctx context.Context) (wasOn bool, err error) {
	answers, err := gather(ctx, s, func(ctx context.Context, on part) (bool, error) { return on.DisableSearch(ctx) })
	return slices.Contains(answers, true), err
}
