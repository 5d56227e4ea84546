package pgagui

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"time"

	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/rawjson"
)

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
