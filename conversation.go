package pgagui

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pgagui/pgagui/db"
)

// PlacedMessage is a message of a conversation and its place in the log.
type PlacedMessage struct {
	// Position is its place in the conversation, from 1.
	Position int
	Message
	MessagePlace
	// Calls are the tool calls in the message that have events of their own in the same run, in the
	// order in which they began. The result of a call is a message with a place of its own.
	Calls []ToolCallPlace
	// Cursor continues before the message (LastMessagesOptions.Cursor).
	Cursor string
}

// MessagePlace is where the log has a message. It is zero if the message has no id.
type MessagePlace struct {
	// RunID is the run that brought the message.
	RunID string
	// FirstSeq is the seq of the event that brought it: its start, or that of the list of messages
	// that has it. If an input stored beside the events has it, that is RUN_STARTED, or else the first
	// event of the run.
	FirstSeq int64
	// LastSeq is the seq of the last event of that run that is about the message, such as its end or
	// that of a tool call in it.
	LastSeq int64
	// StartedAt and UpdatedAt are the timestamps of the two events, or when they were appended if they
	// have none.
	StartedAt, UpdatedAt time.Time
}

// ToolCallPlace is where the log has a tool call, without its result.
type ToolCallPlace struct {
	ID        string    `json:"toolCallId"`
	FirstSeq  int64     `json:"firstSeq"`
	LastSeq   int64     `json:"lastSeq"`
	StartedAt time.Time `json:"startedAt"`
	UpdatedAt time.Time `json:"updatedAt"`
}

// LastMessagesOptions say which messages LastMessages returns. The zero value is the last 100 of the
// head.
type LastMessagesOptions struct {
	At At
	// Cursor is PlacedMessage.Cursor of the first message of the page behind this one. Empty: the end
	// of the conversation.
	Cursor string
	// Limit is the maximum number of messages. 100 if zero; more than 1,000 is ErrLimitExceeded.
	Limit int
}

// LastMessages returns the last messages of a conversation at a point of a thread, or those before a
// cursor, in order, with their places. The page whose first message has Position 1 is the beginning.
// After a run that has ended and was compacted, it reads the messages of the page, and the log of the
// runs that brought them, however long the conversation is.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrLimitExceeded, ErrInvalidArgument (not a cursor),
// ErrKeyCollision, ErrQuarantined, ErrFoldLimit.
func (s *Store) LastMessages(ctx context.Context, threadID string, options LastMessagesOptions) ([]PlacedMessage, error) {
	rows, err := s.of(threadID).LastMessages(ctx, db.LastMessagesParams{
		ThreadID: threadID, RunID: orNull(options.At.RunID), AtSeq: orNull(options.At.Seq), AtTime: timeOrNull(options.At.Time),
		Cursor: orNull(options.Cursor), MaxRows: pageSize(options.Limit, 100), Scope: s.scope,
	})
	if err != nil {
		return nil, ErrorOf(err)
	}
	messages := make([]PlacedMessage, len(rows))
	for i, row := range rows {
		messages[i] = PlacedMessage{
			Position: int(row.Position),
			Message:  Message{ID: row.MessageID, Role: row.Role, JSON: json.RawMessage(row.Message)},
			MessagePlace: MessagePlace{
				RunID: row.RunID, FirstSeq: row.FirstSeq, LastSeq: row.LastSeq, StartedAt: row.StartedAt, UpdatedAt: row.UpdatedAt,
			},
			Cursor: row.Cursor,
		}
		if row.Calls != nil {
			if err := json.Unmarshal(row.Calls, &messages[i].Calls); err != nil {
				return nil, fmt.Errorf("messages of thread %q: the places of tool calls: %w", threadID, err)
			}
		}
	}
	return messages, nil
}

// ToolCallStatus is the progress of a tool call.
type ToolCallStatus string

// The arguments of a call stream in; then it is called and waits for its result. It is cut off if
// its run fails, or ends before the arguments are complete, and there is no result.
const (
	ToolCallStreaming ToolCallStatus = "streaming"
	ToolCallCalled    ToolCallStatus = "called"
	ToolCallCompleted ToolCallStatus = "completed"
	ToolCallCutOff    ToolCallStatus = "cut_off"
)

// ToolCall is a tool call with its arguments and its result.
type ToolCall struct {
	ID   string `json:"toolCallId"`
	Name string `json:"name"`
	// Arguments is the text of the arguments, as far as it has arrived.
	Arguments string `json:"arguments"`
	// ArgumentsJSON is the same as JSON. nil if the text is not JSON.
	ArgumentsJSON json.RawMessage `json:"argumentsJson,omitempty"`
	// Result is the content of the tool's message, a JSON string or a list of parts. nil if there is
	// none so far.
	Result json.RawMessage `json:"result,omitempty"`
	// ParentMessageID is the assistant's message that the call is part of.
	ParentMessageID string `json:"parentMessageId,omitempty"`
	// RunID is the run that made the call. The result may have come in a later one.
	RunID    string `json:"runId"`
	FirstSeq int64  `json:"firstSeq"`
	LastSeq  int64  `json:"lastSeq"`
	// StartedAt is the timestamp of its first event, or when that was appended if it has none.
	StartedAt time.Time `json:"startedAt"`
	// EndedAt is when the result came or the call was cut off. Zero before that.
	EndedAt time.Time      `json:"endedAt,omitzero"`
	Status  ToolCallStatus `json:"status"`
}

// ToolCallsOptions say which tool calls ToolCalls returns. The zero value is those of the head's
// lineage.
type ToolCallsOptions struct {
	At At
	// AfterSeq is a cursor: only calls that began behind this seq.
	AfterSeq int64
	// NoLineage narrows it to the calls that events of the run made, or of the head if At.RunID is
	// empty. Then it reads the log of this run and no other: results that came with a later run are
	// not there, and calls that only a list of messages has are left out.
	NoLineage bool
}

// ToolCalls returns the tool calls of a conversation at a point of a thread, in the order in which
// they began. It reads the log of the lineage, or that of the run alone (NoLineage).
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrKeyCollision, ErrQuarantined, ErrFoldLimit.
func (s *Store) ToolCalls(ctx context.Context, threadID string, options ToolCallsOptions) ([]ToolCall, error) {
	if options.NoLineage {
		return s.runToolCalls(ctx, threadID, options)
	}
	rows, err := s.of(threadID).ToolCalls(ctx, db.ToolCallsParams{
		ThreadID: threadID, RunID: orNull(options.At.RunID), AtSeq: orNull(options.At.Seq), AtTime: timeOrNull(options.At.Time),
		AfterSeq: options.AfterSeq, Scope: s.scope,
	})
	return listOf(rows, err, toolCallOf)
}

func (s *Store) runToolCalls(ctx context.Context, threadID string, options ToolCallsOptions) ([]ToolCall, error) {
	rows, err := s.of(threadID).RunToolCalls(ctx, db.RunToolCallsParams{
		ThreadID: threadID, RunID: orNull(options.At.RunID), AtSeq: orNull(options.At.Seq), AtTime: timeOrNull(options.At.Time), Scope: s.scope,
	})
	if err != nil {
		return nil, ErrorOf(err)
	}
	calls := make([]ToolCall, 0, len(rows))
	for _, row := range rows {
		if call := toolCallOf(db.ToolCallsRow(row)); call.FirstSeq > options.AfterSeq {
			calls = append(calls, call)
		}
	}
	return calls, nil
}

func toolCallOf(row db.ToolCallsRow) ToolCall {
	return ToolCall{
		ID: row.ToolCallID, Name: row.Name, Arguments: row.Arguments, ArgumentsJSON: json.RawMessage(row.ArgumentsJson),
		Result: json.RawMessage(row.Result), ParentMessageID: row.ParentMessageID, RunID: row.RunID,
		FirstSeq: row.FirstSeq, LastSeq: row.LastSeq, StartedAt: row.StartedAt, EndedAt: row.EndedAt, Status: ToolCallStatus(row.Status),
	}
}

// Activity is an activity of a conversation: what an agent shows of its work between messages.
type Activity struct {
	MessageID string          `json:"messageId"`
	Type      string          `json:"activityType"`
	Content   json.RawMessage `json:"content"`
	RunID     string          `json:"runId"` // the run that began it
	FirstSeq  int64           `json:"firstSeq"`
	LastSeq   int64           `json:"lastSeq"`
	StartedAt time.Time       `json:"startedAt"`
	UpdatedAt time.Time       `json:"updatedAt"`
}

// Activities returns the activities of a conversation at a point of a thread, in the order of the
// conversation. It reads the log of the lineage.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrKeyCollision, ErrQuarantined, ErrFoldLimit.
func (s *Store) Activities(ctx context.Context, threadID string, at At) ([]Activity, error) {
	rows, err := s.of(threadID).Activities(ctx, db.ActivitiesParams{
		ThreadID: threadID, RunID: orNull(at.RunID), AtSeq: orNull(at.Seq), AtTime: timeOrNull(at.Time), Scope: s.scope,
	})
	return listOf(rows, err, func(row db.ActivitiesRow) Activity {
		return Activity{
			MessageID: row.MessageID, Type: row.ActivityType, Content: json.RawMessage(row.Content), RunID: row.RunID,
			FirstSeq: row.FirstSeq, LastSeq: row.LastSeq, StartedAt: row.StartedAt, UpdatedAt: row.UpdatedAt,
		}
	})
}

// SessionMessage is a message in the form that legacy sessions had before AG-UI.
type SessionMessage struct {
	// Seq is the seq of the event that brought it.
	Seq int64 `json:"seq"`
	// Type is user, assistant, tool_use, tool_result, system or error.
	Type string `json:"type"`
	// MessageID is the AG-UI message that it is, or is a part of. Empty for an error.
	MessageID string    `json:"messageId,omitempty"`
	RunID     string    `json:"runId"`
	CreatedAt time.Time `json:"createdAt"`
	// JSON is {content} for user, assistant and system, {id, name, input} for tool_use,
	// {tool_use_id, content} for tool_result, {message, code} for error.
	JSON json.RawMessage `json:"payload"`
}

// SessionMessagesOptions say which messages SessionMessages returns. The zero value is those of the
// head's lineage.
type SessionMessagesOptions struct {
	At At
	// AfterSeq is a cursor: only messages whose event has a greater seq.
	AfterSeq int64
}

// SessionMessages returns a conversation at a point of a thread as the six types of messages that
// legacy sessions had before AG-UI, in the order of the events that brought them. Reasoning and
// activities have no type there. It reads the log of the lineage.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrKeyCollision, ErrQuarantined, ErrFoldLimit.
func (s *Store) SessionMessages(ctx context.Context, threadID string, options SessionMessagesOptions) ([]SessionMessage, error) {
	rows, err := s.of(threadID).SessionMessages(ctx, db.SessionMessagesParams{
		ThreadID: threadID, RunID: orNull(options.At.RunID), AtSeq: orNull(options.At.Seq), AtTime: timeOrNull(options.At.Time),
		AfterSeq: options.AfterSeq, Scope: s.scope,
	})
	return listOf(rows, err, func(row db.SessionMessagesRow) SessionMessage {
		return SessionMessage{
			Seq: row.Seq, Type: row.Type, MessageID: row.MessageID, RunID: row.RunID, CreatedAt: row.CreatedAt, JSON: json.RawMessage(row.Payload),
		}
	})
}

// SubagentStatus is the progress of a subagent.
type SubagentStatus string

// A suspended subagent waits for answers to its interrupts; a later run may continue it. It is cut
// off if its run ends first.
const (
	SubagentRunning   SubagentStatus = "running"
	SubagentFinished  SubagentStatus = "finished"
	SubagentSuspended SubagentStatus = "suspended"
	SubagentFailed    SubagentStatus = "failed"
	SubagentCutOff    SubagentStatus = "cut_off"
)

// Subagent is an invocation of a subagent.
type Subagent struct {
	// ID is its subagentRunId.
	ID string `json:"subagentRunId"`
	// Depth is 1 for a subagent of the main agent, 2 for a subagent of that, and so on. A subagent
	// whose parent is unknown, or began later, has depth 1.
	Depth int `json:"depth"`
	// Name, Description and the parents are those of its first SUBAGENT_STARTED. Empty if it does
	// not name them.
	Name             string `json:"name,omitempty"`
	Description      string `json:"description,omitempty"`
	ParentID         string `json:"parentSubagentRunId,omitempty"`
	ParentToolCallID string `json:"parentToolCallId,omitempty"`
	ParentMessageID  string `json:"parentMessageId,omitempty"`

	Status SubagentStatus `json:"status"`
	// RunID and LastRunID are the runs of its first and its last event. They differ if it was
	// suspended and resumed.
	RunID     string `json:"runId"`
	LastRunID string `json:"lastRunId"`
	FirstSeq  int64  `json:"firstSeq"`
	LastSeq   int64  `json:"lastSeq"`
	// EventCount is the number of events that name it.
	EventCount int64 `json:"eventCount"`
	// StartedAt is the timestamp of its first event, or when that was appended if it has none.
	StartedAt time.Time `json:"startedAt"`
	// EndedAt is when it ended or was cut off. Zero before that.
	EndedAt time.Time `json:"endedAt,omitzero"`
	// DurationMs is the time between its first and its last event in each run, added up, in
	// milliseconds. The wait while it is suspended does not count.
	DurationMs int64 `json:"durationMs"`

	// Result is what it returned when it finished. nil if nothing.
	Result json.RawMessage `json:"result,omitempty"`
	// InterruptIDs are the interrupts for whose answers it waits while it is suspended. They may be
	// empty: then a subagent of it waits.
	InterruptIDs []string `json:"interruptIds,omitempty"`
	// ErrorMessage and ErrorCode say why it failed.
	ErrorMessage string `json:"errorMessage,omitempty"`
	ErrorCode    string `json:"errorCode,omitempty"`
	// Usage is the list of that name in its last end, if there is one. AG-UI 1.0 has it in the ends
	// of runs only, where it includes subagents: see Store.Usage.
	Usage json.RawMessage `json:"usage,omitempty"`
}

// SubagentsOptions say which subagents Subagents returns. The zero value is those of the head's
// lineage.
type SubagentsOptions struct {
	At At
	// NoLineage narrows it to the run alone.
	NoLineage bool
}

// Subagents returns the subagents of a conversation at a point of a thread, in the order of a tree:
// each before the subagents that it began. It reads the log of the lineage.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrKeyCollision.
func (s *Store) Subagents(ctx context.Context, threadID string, options SubagentsOptions) ([]Subagent, error) {
	rows, err := s.of(threadID).Subagents(ctx, db.SubagentsParams{
		ThreadID: threadID, RunID: orNull(options.At.RunID), AtSeq: orNull(options.At.Seq), AtTime: timeOrNull(options.At.Time),
		Lineage: !options.NoLineage, Scope: s.scope,
	})
	return listOf(rows, err, func(row db.SubagentsRow) Subagent {
		return Subagent{
			ID: row.SubagentRunID, Depth: int(row.Depth), Name: row.Name, Description: row.Description,
			ParentID: row.ParentSubagentRunID, ParentToolCallID: row.ParentToolCallID, ParentMessageID: row.ParentMessageID,
			Status: SubagentStatus(row.Status), RunID: row.RunID, LastRunID: row.LastRunID,
			FirstSeq: row.FirstSeq, LastSeq: row.LastSeq, EventCount: row.EventCount,
			StartedAt: row.StartedAt, EndedAt: row.EndedAt, DurationMs: row.Duration.Milliseconds(),
			Result: json.RawMessage(row.Result), InterruptIDs: row.InterruptIds, ErrorMessage: row.ErrorMessage, ErrorCode: row.ErrorCode,
			Usage: json.RawMessage(row.Usage),
		}
	})
}

// A GivenAnswer is an interrupt, with what a run brought for it.
type GivenAnswer struct {
	Interrupt
	// Status is Answered, Cancelled, Not answered, or what the answer says of itself.
	Status string
	// Payload is the answer. Nil if there is none.
	Payload json.RawMessage
}

// GivenAnswers returns the interrupts that are open after the run parentRunID, with what the run below it brought for them: in
// resume of its input, or in forwardedProps.command.resume, as clients of LangGraph answer.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrKeyCollision, ErrQuarantined, ErrFoldLimit, ErrLimitExceeded.
func (s *Store) GivenAnswers(ctx context.Context, run RunRef, parentRunID string) (all []GivenAnswer, err error) {
	interrupts, err := s.Interrupts(ctx, run.ThreadID, At{RunID: parentRunID})
	if err != nil || len(interrupts) == 0 {
		return nil, err
	}
	input, err := s.answersIn(ctx, run)
	if err != nil {
		return nil, err
	}
	for _, interrupt := range interrupts {
		answer := GivenAnswer{Interrupt: interrupt, Status: "Not answered"}
		for _, given := range input.Resume {
			if given.InterruptID == interrupt.ID {
				answer.Status = cmp.Or(map[string]string{"resolved": "Answered", "cancelled": "Cancelled"}[given.Status], given.Status)
				answer.Payload = given.Payload
			}
		}
		if command := input.ForwardedProps.Command.Resume; input.Resume == nil && command != nil {
			answer.Status, answer.Payload = "Answered", command
		}
		all = append(all, answer)
	}
	return all, nil
}

type answersInput struct {
	Resume []struct {
		InterruptID, Status string
		Payload             json.RawMessage
	}
	ForwardedProps struct {
		Command struct{ Resume json.RawMessage }
	}
}

// answersIn returns the answers in the input of a run, which stands beside its events or in RUN_STARTED. An odd one has none.
func (s *Store) answersIn(ctx context.Context, run RunRef) (input answersInput, err error) {
	beside, err := s.RunInput(ctx, run)
	if err == nil {
		_ = json.Unmarshal(beside, &input)
		return input, nil
	} else if !errors.Is(err, ErrUnknownInput) {
		return input, err
	}
	read, err := s.History(ctx, run.ThreadID, HistoryOptions{RunID: run.RunID, NoLineage: true, Types: []string{"RUN_STARTED"}, Raw: true, Limit: 1})
	if err != nil {
		return input, err
	}
	for _, started := range read.Events {
		var event struct{ Input answersInput }
		_ = json.Unmarshal(started.JSON, &event)
		input = event.Input
	}
	return input, nil
}

// UsageOptions say of which runs Usage counts the tokens. The zero value is the head's lineage.
type UsageOptions struct {
	// RunID is the run whose lineage is counted. The head if empty.
	RunID string
	// NoLineage narrows it to the run alone.
	NoLineage bool
	// WholeThread counts all runs of the thread, on all branches, each once. It excludes RunID and
	// NoLineage.
	WholeThread bool
}

// Usage is how many tokens runs used, as they report them.
type Usage struct {
	Models []ModelUsage `json:"usage"`
	// Runs is how many runs were read, and RunsWithoutUsage how many of them reported nothing: they
	// are in progress, were cut off, or their agent does not count.
	Runs             int64 `json:"runs"`
	RunsWithoutUsage int64 `json:"runsWithoutUsage"`
}

// ModelUsage is how many tokens runs used of a model of a provider, in the accounting of AG-UI.
// ReasoningTokens are a part of OutputTokens, CachedInputTokens and CacheWriteInputTokens are parts
// of InputTokens, and TotalTokens are InputTokens plus OutputTokens. A count that no run reported is
// nil.
type ModelUsage struct {
	Provider              string `json:"provider,omitempty"`
	Model                 string `json:"model,omitempty"`
	InputTokens           *int64 `json:"inputTokens,omitempty"`
	OutputTokens          *int64 `json:"outputTokens,omitempty"`
	TotalTokens           *int64 `json:"totalTokens,omitempty"`
	ReasoningTokens       *int64 `json:"reasoningTokens,omitempty"`
	CachedInputTokens     *int64 `json:"cachedInputTokens,omitempty"`
	CacheWriteInputTokens *int64 `json:"cacheWriteInputTokens,omitempty"`
	// Runs is how many runs used the model.
	Runs int64 `json:"runs"`
}

// Usage returns how many tokens the runs of a thread used, by provider and model. The calls of
// subagents are in the count of their run. It reads the ends of the runs in the log, and the rest of
// those whose ends report nothing.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrKeyCollision, ErrInvalidArgument.
func (s *Store) Usage(ctx context.Context, threadID string, options UsageOptions) (Usage, error) {
	rows, err := s.of(threadID).Usage(ctx, db.UsageParams{
		ThreadID: threadID, RunID: orNull(options.RunID), Lineage: !options.NoLineage, WholeThread: options.WholeThread, Scope: s.scope,
	})
	if err != nil {
		return Usage{}, ErrorOf(err)
	}
	usage := Usage{Models: []ModelUsage{}}
	for _, row := range rows {
		usage.Runs, usage.RunsWithoutUsage = row.AllRuns, row.RunsWithoutUsage
		if row.Runs == 0 { // the only row: no run reported any
			break
		}
		usage.Models = append(usage.Models, ModelUsage{
			Provider: row.Provider, Model: row.Model, Runs: row.Runs,
			InputTokens: reported(row.InputTokens), OutputTokens: reported(row.OutputTokens), TotalTokens: reported(row.TotalTokens),
			ReasoningTokens: reported(row.ReasoningTokens), CachedInputTokens: reported(row.CachedInputTokens),
			CacheWriteInputTokens: reported(row.CacheWriteInputTokens),
		})
	}
	return usage, nil
}

func reported(count int64) *int64 {
	if count < 0 {
		return nil
	}
	return &count
}
