package pgagui

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/rawjson"
)

// Run is a node of a thread's tree.
type Run struct {
	ID          string `json:"runId"`
	ParentRunID string `json:"parentRunId,omitempty"` // empty: a root
	Status      Status `json:"status"`
	// Depth counts the runs from the root to this one. The depth of a root is 1.
	Depth int `json:"depth"`
	// Number counts the runs of the thread 1, 2, 3, … in the order in which they began.
	Number    int       `json:"number"`
	FirstSeq  int64     `json:"firstSeq"`
	LastSeq   int64     `json:"lastSeq,omitempty"` // 0 while it is running
	StartedAt time.Time `json:"startedAt"`
	EndedAt   time.Time `json:"endedAt,omitzero"` // zero while it is running
	// RunEnd says why it ended so; a text of more than 1,000 characters is cut.
	RunEnd
}

// Branch is a leaf of a thread's tree with the lineage that leads to it.
type Branch struct {
	// RunID is the last run of the branch.
	RunID string `json:"runId"`
	// Runs is the length of its lineage.
	Runs int `json:"runs"`
	// ForkedFrom is the last run that it shares with another branch. Empty if there is none.
	ForkedFrom string `json:"forkedFrom,omitempty"`
	Status     Status `json:"status"`
	LastSeq    int64  `json:"lastSeq,omitempty"` // 0 while it is running
	// IsHead is true if a run that names no parent continues this branch.
	IsHead bool `json:"isHead"`
}

// RunPair is two runs of a thread to compare. Their order does not matter.
type RunPair struct{ A, B string }

// Runs returns all runs of a thread in the order in which they began: its tree.
//
// Errors: ErrUnknownThread, ErrKeyCollision.
func (s *Store) Runs(ctx context.Context, threadID string) ([]Run, error) {
	rows, err := s.of(threadID).Runs(ctx, db.RunsParams{ThreadID: threadID, Scope: s.scope})
	return listOf(rows, err, runOf)
}

// Lineage returns the runs from the root to a run, or to the head if run.RunID is empty. The root
// comes first.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrKeyCollision.
func (s *Store) Lineage(ctx context.Context, run RunRef) ([]Run, error) {
	rows, err := s.of(run.ThreadID).Lineage(ctx, db.LineageParams{ThreadID: run.ThreadID, RunID: orNull(run.RunID), Scope: s.scope})
	return listOf(rows, err, func(row db.LineageRow) Run { return runOf(db.RunsRow(row)) })
}

// Branches returns the branches of a thread in the order in which their last runs began.
//
// Errors: ErrUnknownThread, ErrKeyCollision.
func (s *Store) Branches(ctx context.Context, threadID string) ([]Branch, error) {
	rows, err := s.of(threadID).Branches(ctx, db.BranchesParams{ThreadID: threadID, Scope: s.scope})
	return listOf(rows, err, func(row db.BranchesRow) Branch {
		return Branch{
			RunID: row.RunID, Runs: int(row.Runs), ForkedFrom: row.ForkedFrom,
			Status: Status(row.Status), LastSeq: row.LastSeq, IsHead: row.IsHead,
		}
	})
}

// Head returns the run that began last. A new run that names no parent becomes its child.
//
// Errors: ErrUnknownThread (also if the thread has no run yet), ErrKeyCollision.
func (s *Store) Head(ctx context.Context, threadID string) (runID string, err error) {
	runID, err = s.of(threadID).Head(ctx, db.HeadParams{ThreadID: threadID, Scope: s.scope})
	return runID, ErrorOf(err)
}

// MergeBase returns the last run that the lineages of two runs share.
//
// Errors: ErrUnrelatedRuns if the runs have different roots; ErrUnknownThread, ErrUnknownRun,
// ErrKeyCollision.
func (s *Store) MergeBase(ctx context.Context, threadID string, runs RunPair) (runID string, err error) {
	runID, err = s.of(threadID).MergeBase(ctx, db.MergeBaseParams{ThreadID: threadID, RunA: runs.A, RunB: runs.B, Scope: s.scope})
	if err == nil && runID == "" {
		return "", unknown(ErrUnrelatedRuns, "runs %q and %q of thread %q have different roots", runs.A, runs.B, threadID)
	}
	return runID, ErrorOf(err)
}

// MessageOrigin returns the run that first brought a message, in its events or in its input, on the
// lineage of a run; of the head if run.RunID is empty. To edit or regenerate the message, begin a
// run with the parent of this one (Run.ParentRunID; if empty, NoParent). It reads the ids of the
// thread's stored messages and the log between two snapshots, however long the log is.
//
// Errors: ErrUnknownMessage if no run of the lineage brought it; ErrUnknownThread, ErrUnknownRun,
// ErrKeyCollision, ErrQuarantined, ErrFoldLimit.
func (s *Store) MessageOrigin(ctx context.Context, run RunRef, messageID string) (Run, error) {
	rows, err := s.of(run.ThreadID).MessageOrigin(ctx, db.MessageOriginParams{
		ThreadID: run.ThreadID, MessageID: messageID, RunID: orNull(run.RunID), Scope: s.scope,
	})
	switch {
	case err != nil:
		return Run{}, ErrorOf(err)
	case len(rows) == 0:
		return Run{}, unknown(ErrUnknownMessage, "no run of the lineage brought a message %q", messageID)
	}
	return runOf(db.RunsRow(rows[0])), nil
}

// ClientMessages is what a client sent with a request to run, as BranchPoint reads it.
type ClientMessages struct {
	Messages   json.RawMessage // the list of its RunAgentInput
	History    string          // which messages clients send: "full", "new", or "fill" (empty): all or only new ones
	IsGiven    bool            // the client named the parent, or answers what it asks
	WaitedFrom *string         // the run at whose end the thread was when the request began to wait; empty: none; nil: it did not wait
}

// BranchPoint says where a run continues. Its Point is "head" (the client continues the conversation), "before" (it edits a message,
// or wants another answer), "start" (it replaces all of it), or "elsewhere" (it trimmed or reordered it, and continues it).
type BranchPoint struct {
	ParentRunID  string // empty: none
	Point        string
	IsFilled     bool  // the agent needs AgentMessages in place of what the client sent
	LacksHistory bool  // the client lacks stored messages, or has them under other ids
	HistoryBytes int64 // of the stored messages and the state at the parent
}

// BranchPoint decides where a run continues whose client names no parent, from the messages that it sent. run is the one that it
// continues otherwise (empty: the head). Call it behind Claim, with the parent of the claim.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrInvalidEvents (no list of messages), ErrKeyCollision, ErrQuarantined, ErrFoldLimit.
func (s *Store) BranchPoint(ctx context.Context, run RunRef, sent ClientMessages) (BranchPoint, error) {
	row, err := s.of(run.ThreadID).BranchPoint(ctx, db.BranchPointParams{
		ThreadID: run.ThreadID, RunID: orNull(run.RunID), Messages: rawjson.Text(sent.Messages), History: cmp.Or(sent.History, "fill"),
		IsGiven: sent.IsGiven, WaitedFrom: sent.WaitedFrom, Scope: s.scope,
	})
	return BranchPoint(row), ErrorOf(err)
}

// AgentMessages returns the messages that an agent needs whose client sent only some: the stored ones at the end of a run, without
// activities, and then those of the client that are new. messages is the list of the client's RunAgentInput.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrInvalidEvents (no list of messages), ErrKeyCollision, ErrQuarantined, ErrFoldLimit.
func (s *Store) AgentMessages(ctx context.Context, run RunRef, messages json.RawMessage) (json.RawMessage, error) {
	list, err := s.of(run.ThreadID).AgentMessages(ctx, db.AgentMessagesParams{
		ThreadID: run.ThreadID, RunID: orNull(run.RunID), Messages: rawjson.Text(messages), Scope: s.scope,
	})
	return json.RawMessage(list), ErrorOf(err)
}

// Question says what an answer is to.
type Question struct {
	AskedBy      string          // the run that the client takes for the one that asks
	InterruptIDs []string        // that the answer names
	Value        json.RawMessage // of the CUSTOM event that asked, if the answer repeats it
}

// Answer says which run asks, and whether it is answered.
type Answer struct {
	AskingRunID string    // empty: no run of the lineage asks that
	RunID       string    // the run that answered it; empty: it is open
	At          time.Time // when that began
}

// Answered says whether a question is answered in the lineage of a run; of the head if run.RunID is empty.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrKeyCollision.
func (s *Store) Answered(ctx context.Context, run RunRef, question Question) (Answer, error) {
	row, err := s.of(run.ThreadID).Answered(ctx, db.AnsweredParams{
		ThreadID: run.ThreadID, RunID: orNull(run.RunID), AskedBy: orNull(question.AskedBy), InterruptIds: question.InterruptIDs, Question: rawjson.Text(question.Value), Scope: s.scope,
	})
	return Answer{row.AskingRunID, row.AnsweredBy, row.AnsweredAt}, ErrorOf(err)
}

func runOf(row db.RunsRow) Run {
	run := Run{
		ID: row.RunID, ParentRunID: row.ParentRunID, Status: Status(row.Status), Depth: int(row.Depth), Number: int(row.RunNo),
		FirstSeq: row.FirstSeq, LastSeq: row.LastSeq, StartedAt: row.StartedAt,
		RunEnd: RunEnd{row.ErrorCode, row.ErrorMessage, row.StopReason, row.CutOffReason},
	}
	if run.Status != Running {
		run.EndedAt = row.EndedAt
	}
	return run
}

// Status is the state of a run.
type Status string

// A run is running until RUN_FINISHED or RUN_ERROR. Its status is then that of its last end, even if
// events follow it.
const (
	Running     Status = "running"
	Finished    Status = "finished"    // RUN_FINISHED
	Interrupted Status = "interrupted" // RUN_FINISHED with the outcome interrupt: it waits for answers
	Cancelled   Status = "cancelled"   // RUN_FINISHED with the outcome cancelled: it was stopped
	Failed      Status = "failed"      // RUN_ERROR
	CutOff      Status = "cut_off"     // it was ended on behalf of its writer, which was gone
)

// RunEnd says why a run ended as it did. Each field is empty if it does not apply.
type RunEnd struct {
	// ErrorCode and ErrorMessage are those of the RUN_ERROR that ended the run.
	ErrorCode    string `json:"errorCode,omitempty"`
	ErrorMessage string `json:"errorMessage,omitempty"`
	// StopReason is the reason given with RequestStop, or in the result of a cancelled run.
	StopReason string `json:"stopReason,omitempty"`
	// CutOffReason says why the run was ended on behalf of its writer.
	CutOffReason string `json:"cutOffReason,omitempty"`
}

// RunStatus is the state of a run and of its writer.
type RunStatus struct {
	RunID       string `json:"runId"`
	ParentRunID string `json:"parentRunId,omitempty"` // empty: a root
	Status      Status `json:"status"`
	// FirstSeq and LastSeq are the seqs of its first event and of its last one so far.
	FirstSeq  int64     `json:"firstSeq"`
	LastSeq   int64     `json:"lastSeq"`
	StartedAt time.Time `json:"startedAt"`
	EndedAt   time.Time `json:"endedAt,omitzero"` // zero while it is running
	// AliveAt is when its writer last appended an event or sent a heartbeat.
	AliveAt time.Time `json:"aliveAt"`
	// Stale is true if the run is running and its lease has expired (docs/settings.md). pgagui job reap
	// closes it, or the next run of the thread does.
	Stale bool `json:"stale,omitempty"`
	// HasHeartbeat is true if its writer sends heartbeats, as a Recorder does. Such a writer appends with
	// AfterSeq, so an event of another writer would end its recording.
	HasHeartbeat bool `json:"hasHeartbeat,omitempty"`
	// StopRequestedAt is when RequestStop was first called for the run. Zero if it was not.
	StopRequestedAt time.Time `json:"stopRequestedAt,omitzero"`
	RunEnd
}

// Status returns the state of a run, or of the head if run.RunID is empty.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrKeyCollision.
func (s *Store) Status(ctx context.Context, run RunRef) (*RunStatus, error) {
	row, err := s.of(run.ThreadID).RunStatus(ctx, db.RunStatusParams{ThreadID: run.ThreadID, RunID: orNull(run.RunID), Scope: s.scope})
	if err != nil {
		return nil, ErrorOf(err)
	}
	return &RunStatus{
		RunID: row.RunID, ParentRunID: row.ParentRunID, Status: Status(row.Status), FirstSeq: row.FirstSeq, LastSeq: row.LastSeq,
		StartedAt: row.StartedAt, EndedAt: row.EndedAt, AliveAt: row.AliveAt, Stale: row.IsStale, HasHeartbeat: row.HasHeartbeat,
		StopRequestedAt: row.StopRequestedAt, RunEnd: RunEnd{row.ErrorCode, row.ErrorMessage, row.StopReason, row.CutOffReason},
	}, nil
}

// RequestStopOptions belong to RequestStop.
type RequestStopOptions struct {
	// Reason is for the writer of the run to read. It may be empty.
	Reason string
}

// RequestStop requests the writer of a run to stop, in any process. If run.RunID is empty, it
// requests the writers of all runs in progress of the thread. A Recorder then cancels the context of
// the run within about a second; the writer ends the run. RequestStop returns the number of runs
// that were requested to stop; 0 if none is in progress.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrKeyCollision.
func (s *Store) RequestStop(ctx context.Context, run RunRef, options RequestStopOptions) (runs int, err error) {
	n, err := s.of(run.ThreadID).RequestStop(ctx, db.RequestStopParams{
		ThreadID: run.ThreadID, RunID: orNull(run.RunID), Reason: orNull(options.Reason), Scope: s.scope,
	})
	return int(n), ErrorOf(err)
}

// AgentError is what the agent of a run answered in place of a stream of events.
type AgentError struct {
	Status      int    // of HTTP
	ContentType string // empty: none
	// Body is the first 4 KB of the body, in whatever encoding it came.
	Body       []byte
	RecordedAt time.Time // when it was stored
}

type agentErrorJSON struct {
	Status      int       `json:"status"`
	ContentType string    `json:"contentType,omitempty"`
	Body        string    `json:"body,omitempty"`
	BodyBase64  []byte    `json:"bodyBase64,omitempty"` // in place of body, if that is not UTF-8
	RecordedAt  time.Time `json:"recordedAt,omitzero"`
}

// MarshalJSON returns {"status", "contentType", "body", "recordedAt"}. A body that is not UTF-8 is "bodyBase64".
func (e AgentError) MarshalJSON() ([]byte, error) {
	text := agentErrorJSON{Status: e.Status, ContentType: e.ContentType, RecordedAt: e.RecordedAt}
	if utf8.Valid(e.Body) {
		text.Body = string(e.Body)
	} else {
		text.BodyBase64 = e.Body
	}
	return json.Marshal(text)
}

// UnmarshalJSON reads what MarshalJSON returns.
func (e *AgentError) UnmarshalJSON(text []byte) error {
	var read agentErrorJSON
	err := json.Unmarshal(text, &read)
	*e = AgentError{read.Status, read.ContentType, append(read.BodyBase64, read.Body...), read.RecordedAt}
	return err
}

// Text is the body for people to read: bytes that are not UTF-8 are U+FFFD.
func (e AgentError) Text() string { return strings.ToValidUTF8(string(e.Body), "\uFFFD") }

// KeepAgentError keeps with a run what its agent answered in place of a stream of events, in place of an earlier answer. At most the first
// 4 KB of the body are kept, and RecordedAt is the time of the call.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrKeyCollision.
func (s *Store) KeepAgentError(ctx context.Context, run RunRef, answer AgentError) error {
	return ErrorOf(s.of(run.ThreadID).KeepAgentError(ctx, db.KeepAgentErrorParams{
		ThreadID: run.ThreadID, RunID: orNull(run.RunID), Status: int32(answer.Status),
		ContentType: strings.ToValidUTF8(strings.ReplaceAll(answer.ContentType, "\x00", ""), "\uFFFD"), Body: answer.Body, Scope: s.scope,
	}))
}

// AgentError returns what the agent of a run answered in place of a stream of events. It is nil if there is no such answer, or if the
// role of the database lacks agui_diagnoser.
//
// Errors: ErrUnknownThread, ErrUnknownRun, ErrKeyCollision.
func (s *Store) AgentError(ctx context.Context, run RunRef) (*AgentError, error) {
	rows, err := s.of(run.ThreadID).AgentError(ctx, db.AgentErrorParams{ThreadID: run.ThreadID, RunID: orNull(run.RunID), Scope: s.scope})
	if err != nil || len(rows) == 0 {
		return nil, ErrorOf(err)
	}
	row := rows[0]
	return &AgentError{int(row.Status), row.ContentType, row.Body, row.RecordedAt}, nil
}

// ClaimOptions say how Claim takes the place of a run. The zero value claims a run that continues
// from the head, without an input.
type ClaimOptions struct {
	// Claimant is a random text that makes the call idempotent: a call whose answer was lost can be
	// repeated with the same one. It is also what ReleaseClaim needs. A new one if empty.
	Claimant string
	// Input is the input of the run (RunAgentInput), a JSON object. If the run id is in use, it
	// tells a repeated request (ErrRunIDInUse) from another one (ErrConflictingRepeat). The
	// database keeps a hash of it; a recording with the Claim stores it with the beginning.
	Input json.RawMessage
	// ParentRunID is the parent of the run. The head if empty.
	ParentRunID string
	// NoParent makes the run a root, whatever ParentRunID names.
	NoParent bool
	// Parallel lets the run begin while others are in progress in its thread, and others while it
	// is claimed.
	Parallel bool
}

// Claim is the place of a run that will begin. BeginOptions.Claim keeps it until then.
type Claim struct {
	Run RunRef
	// Scope is that of the run's thread.
	Scope string
	// ParentRunID is the parent that the run will have. Empty: none.
	ParentRunID string
	Parallel    bool
	ClaimedAt   time.Time
	// AliveUntil is when the lease of the claim ends without another heartbeat. A recording sends
	// them.
	AliveUntil time.Time
	// Claimant and Input are those of Store.Claim. Store.Claims does not return them.
	Claimant string
	Input    json.RawMessage
}

// Claim takes the place of a run that will begin, for a program that calls an agent and gets its
// first event later. Until the run begins, no other run begins in the thread, unless it or the
// claim is parallel. Claim also determines the parent of the run.
//
// The call that begins the run ends the claim. Without a beginning, the claim ends with
// ReleaseClaim or with its lease (the database's setting heartbeat_lease, 30 seconds). A recorder
// renews the lease and reports requests to stop: see BeginOptions.Claim. A claim is no run: Claims
// alone returns it.
//
// Errors:
//   - ErrRunIDInUse: the run exists, or another claimant has it, with the same input. The caller
//     can follow that run. ErrConflictingRepeat: the same with another input.
//   - ErrRunInProgress: another run of the thread is in progress or claimed.
//   - ErrUnknownParent, ErrParentInProgress: the parent does not exist, or has not ended.
//   - ErrInvalidEvents: an id is empty, or Input is no JSON object. ErrLimitExceeded: Input or an id
//     is too large.
//   - ErrThreadErased: the thread was erased. ErrKeyCollision: another thread has its key.
func (s *Store) Claim(ctx context.Context, run RunRef, options ClaimOptions) (*Claim, error) {
	if options.Claimant == "" {
		options.Claimant = rand.Text()
	}
	params := db.ClaimRunParams{
		ThreadID: run.ThreadID, RunID: run.RunID, Claimant: options.Claimant, Input: rawjson.Text(options.Input),
		ParentRunID: parentOf(options.ParentRunID, options.NoParent), Parallel: options.Parallel, Scope: s.scope,
	}
	row, err := s.of(run.ThreadID).ClaimRun(ctx, params)
	if err != nil {
		return nil, ErrorOf(err)
	}
	claim := s.claimOf(run.ThreadID, db.ClaimsRow(row))
	claim.Claimant, claim.Input = options.Claimant, options.Input
	return &claim, nil
}

// ReleaseClaim gives up a claim, so that another run can begin. It changes nothing if the run has
// begun or the claim is gone, so it can be called twice. Recording.Close calls it for a recording
// without events.
//
// Errors: ErrKeyCollision.
func (s *Store) ReleaseClaim(ctx context.Context, claim *Claim) error {
	_, err := s.ofScope(claim.Scope, claim.Run.ThreadID).ReleaseClaim(ctx, db.ReleaseClaimParams{
		ThreadID: claim.Run.ThreadID, RunID: claim.Run.RunID, Claimant: claim.Claimant, Scope: claim.Scope,
	})
	return ErrorOf(err)
}

// Claims returns the runs of a thread that are claimed and have not begun. The list is empty if
// there is none, or no such thread.
//
// Errors: ErrKeyCollision.
func (s *Store) Claims(ctx context.Context, threadID string) ([]Claim, error) {
	rows, err := s.of(threadID).Claims(ctx, db.ClaimsParams{ThreadID: threadID, Scope: s.scope})
	return listOf(rows, err, func(row db.ClaimsRow) Claim { return s.claimOf(threadID, row) })
}

func (s *Store) claimOf(threadID string, row db.ClaimsRow) Claim {
	return Claim{
		Run: RunRef{ThreadID: threadID, RunID: row.RunID}, Scope: s.scope, ParentRunID: row.ParentRunID, Parallel: row.Parallel,
		ClaimedAt: row.ClaimedAt, AliveUntil: row.AliveUntil,
	}
}
