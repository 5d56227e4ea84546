package jobs

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/chain"
)

// Head is the last link of a thread whose log is chained (agui.enable_chain).
type Head struct {
	Scope    string `json:"scope"`
	ThreadID string `json:"threadId"`
	// Seq is the seq of the last event that the link covers.
	Seq int64 `json:"seq"`
	// Hash is the hash of the link, in hexadecimal digits.
	Hash string `json:"hash"`
	// RecordedAt is when that event was recorded.
	RecordedAt time.Time `json:"recordedAt"`
}

// Heads calls visit with the head of each chained thread of a scope; if scope is nil, of all
// scopes. Heads that are kept outside of the database prove later, with VerifyOptions.Heads, what
// the log was.
func Heads(ctx context.Context, pool *pgxpool.Pool, scope *string, visit func(Head) error) error {
	next := db.HeadsParams{Scope: scope, After: pgtype.UUID{Valid: true}, Page: threadsPerPage}
	for {
		page, err := db.New(pool).Heads(ctx, next)
		if err != nil {
			return err
		}
		for _, row := range page {
			if err := visit(Head{Scope: row.Scope, ThreadID: row.ThreadID, Seq: row.Seq, Hash: hex.EncodeToString(row.Hash), RecordedAt: row.RecordedAt}); err != nil {
				return err
			}
			next.After = row.ThreadKey
		}
		if len(page) < threadsPerPage {
			return nil
		}
	}
}

// threadName names a thread in heads.
type threadName struct{ scope, threadID string }

// keptHeads groups heads by thread.
func keptHeads(heads []Head) map[threadName][]Head {
	kept := map[threadName][]Head{}
	for _, head := range heads {
		name := threadName{head.Scope, head.ThreadID}
		kept[name] = append(kept[name], head)
	}
	return kept
}

// chainCheck computes the hashes of a thread from its raw log, and compares them with the stored
// hashes and with heads that were kept elsewhere.
type chainCheck struct {
	queries *db.Queries
	key     pgtype.UUID
	room    room
	heads   []Head

	state    db.ChainStateRow
	runs     map[int32]db.ChainRunsRow
	previous []byte // the hash of the last link; nil: the chain has not begun
	atHead   map[int64][]byte
	begunAt  time.Time // when the first event was recorded
	lastSeq  int64
	problems []pgagui.Problem
}

func (c *chainCheck) run(ctx context.Context) ([]pgagui.Problem, error) {
	var err error
	c.state, err = c.queries.ChainState(ctx, c.key)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil // the thread's own row is missing, which verify_log says
	}
	if err != nil {
		return nil, err
	}
	runs, err := c.queries.ChainRuns(ctx, c.key)
	if err != nil {
		return nil, err
	}
	c.runs, c.atHead, c.previous, c.problems = make(map[int32]db.ChainRunsRow, len(runs)), map[int64][]byte{}, nil, nil
	for _, run := range runs {
		c.runs[run.RunNo] = run
	}
	for _, head := range c.heads {
		c.atHead[head.Seq] = nil
	}

	next := db.ChainBatchesParams{
		ThreadKey: c.key, RunNos: slices.Collect(maps.Keys(c.runs)), Page: mostPageBatches, PageBytes: c.room.pageBytes(), MostBytes: c.room.mostBytes(),
	}
	for hasMore := true; hasMore; {
		page, err := c.queries.ChainBatches(ctx, next)
		if err != nil {
			return nil, err
		}
		hasMore = false
		for _, batch := range page {
			if batch.PageBytes > next.MostBytes {
				return nil, errTooLarge
			}
			c.add(batch)
			hasMore, next.FromSeq = batch.HasMore, batch.FirstSeq+1
		}
	}
	if err := c.compareHeads(ctx); err != nil {
		return nil, err
	}
	if c.previous == nil && len(c.heads) == 0 && c.state.DueSeq > 0 && !c.state.IsCertain {
		c.found(pgagui.Note, c.state.DueRunID, "the log is not chained, although the run began after agui.enable_chain")
	}
	return c.problems, nil
}

func (c *chainCheck) found(severity pgagui.Severity, runID, format string, arguments ...any) {
	c.problems = append(c.problems, pgagui.Problem{RunID: runID, Problem: "chain: " + fmt.Sprintf(format, arguments...), Severity: severity})
}

// add checks the next batch of the thread.
func (c *chainCheck) add(batch db.ChainBatchesRow) {
	run := c.runs[batch.RunNo]
	isDue := c.lastSeq < c.state.DueSeq && batch.FirstSeq >= c.state.DueSeq && c.state.IsCertain // the first that must have a hash
	if c.lastSeq == 0 {
		c.begunAt = firstTime(batch)
	}
	c.lastSeq = batch.FirstSeq + int64(batch.N) - 1
	switch {
	case batch.Hash == nil && c.previous == nil && isDue:
		c.found(pgagui.Damage, run.RunID, "the batch at seq %d has no hash, although its run began after agui.enable_chain", batch.FirstSeq)
		return
	case batch.Hash == nil && c.previous == nil:
		return // from before the chain, or what follows the first that must have a hash
	case batch.Hash == nil:
		c.found(pgagui.Damage, run.RunID, "the batch at seq %d has no hash, but what precedes it is chained", batch.FirstSeq)
		return
	case c.previous == nil && batch.FirstSeq != run.FirstSeq:
		c.found(pgagui.Damage, run.RunID, "the chain begins at seq %d, within a run", batch.FirstSeq)
	case c.previous == nil && batch.FirstSeq > 1:
		c.found(pgagui.Note, run.RunID, "it begins at seq %d: nothing protects what precedes it", batch.FirstSeq)
	}
	if c.previous == nil {
		c.previous = chain.Origin(c.state.Scope, c.state.ThreadID)
	}
	hash, problem := c.hash(run, batch)
	if problem == "" && !bytes.Equal(hash, batch.Hash) {
		problem = "the events, their order or their times are not those that were appended"
	}
	if problem != "" {
		c.found(pgagui.Damage, run.RunID, "from seq %d to %d: %s", batch.FirstSeq, c.lastSeq, problem)
	}
	c.previous = batch.Hash
}

// hash computes the hash of the last link in a batch.
func (c *chainCheck) hash(run db.ChainRunsRow, batch db.ChainBatchesRow) (hash []byte, problem string) {
	var events [][]byte
	for event, err := range compaction.Split(batch.Events) {
		if err != nil {
			return nil, "the batch is not an array of events"
		}
		events = append(events, event)
	}
	links := batch.Links
	if len(links) == 0 {
		links = []int32{batch.N}
	}
	var n int64
	for _, link := range links {
		if link < 1 {
			return nil, "a link has no events"
		}
		n += int64(link)
	}
	switch {
	case n != int64(len(events)) || n != int64(batch.N):
		return nil, fmt.Sprintf("the batch has %d events, its links %d", len(events), n)
	case len(batch.EarlierUs) != 0 && len(batch.EarlierUs) != len(events):
		return nil, fmt.Sprintf("the batch has %d events, and the times of %d", len(events), len(batch.EarlierUs))
	case !bytes.Equal(chain.Array(events), batch.Events):
		return nil, "there is something between the events that was not when they were appended"
	}
	times := make([]time.Time, len(events))
	for i := range times {
		times[i] = batch.RecordedAt
		if len(batch.EarlierUs) > 0 {
			times[i] = times[i].Add(-time.Duration(batch.EarlierUs[i]) * time.Microsecond)
		}
	}

	hash = c.previous
	seq := batch.FirstSeq
	for from := 0; from < len(events); {
		to := from + int(links[0])
		links = links[1:]
		link := chain.Link{Previous: hash, FirstSeq: seq, Times: times[from:to], RunID: run.RunID, Events: events[from:to]}
		if seq == run.FirstSeq {
			link.Beginning = &chain.Beginning{InputHash: run.InputHash}
			if run.ParentNo != nil {
				if parent, found := c.runs[*run.ParentNo]; found {
					link.Beginning.ParentID = &parent.RunID
				}
			}
		}
		hash = link.Hash()
		seq += int64(to - from)
		from = to
		if _, isAsked := c.atHead[seq-1]; isAsked {
			c.atHead[seq-1] = hash
		}
	}
	return hash, ""
}

// compareHeads compares the log with the heads that were kept elsewhere.
func (c *chainCheck) compareHeads(ctx context.Context) error {
	for _, head := range c.heads {
		hash := c.atHead[head.Seq]
		if hex.EncodeToString(hash) == head.Hash {
			continue
		}
		// The log may have begun after an erasure that was lifted.
		switch isErased, err := wasErased(ctx, c.queries, head, c.begunAt); {
		case err != nil:
			return err
		case isErased:
			c.found(pgagui.Note, "", "the thread was erased (agui.erasure) after its head at seq %d was kept, and begins afterwards", head.Seq)
		case head.Seq > c.lastSeq:
			c.found(pgagui.Damage, "", "the log ends at seq %d, but its head was at seq %d: its end was cut off", c.lastSeq, head.Seq)
		case hash == nil:
			c.found(pgagui.Damage, "", "no link ends at seq %d, where its head was", head.Seq)
		default:
			c.found(pgagui.Damage, "", "the log through seq %d is not what it was when its head was kept", head.Seq)
		}
	}
	return nil
}

// wasErased returns whether an erasure fits a head: it is newer, and counts all events that the head covers. If before is not zero, the
// erasure is also older than that.
func wasErased(ctx context.Context, queries *db.Queries, head Head, before time.Time) (bool, error) {
	erasures, err := queries.Erasures(ctx, db.ErasuresParams{Scope: head.Scope, ThreadID: head.ThreadID})
	return slices.ContainsFunc(erasures, func(erasure db.ErasuresRow) bool {
		return erasure.Events >= head.Seq && !erasure.ErasedAt.Before(head.RecordedAt) && (before.IsZero() || !erasure.ErasedAt.After(before))
	}), err
}

// firstTime is when the first event of a batch was recorded.
func firstTime(batch db.ChainBatchesRow) time.Time {
	if len(batch.EarlierUs) == 0 {
		return batch.RecordedAt
	}
	return batch.RecordedAt.Add(-time.Duration(batch.EarlierUs[0]) * time.Microsecond)
}

// missing reports a thread of which heads were kept and that no longer exists.
func (j *verifyJob) missing(ctx context.Context, name threadName) (VerifiedThread, error) {
	found := VerifiedThread{Scope: name.scope, ThreadID: name.threadID, Problems: []ThreadProblem{}}
	for _, head := range j.heads[name] {
		isErased, err := wasErased(ctx, db.New(j.pool), head, time.Time{})
		if err != nil {
			return found, err
		}
		if !isErased {
			found.Problems = append(found.Problems, ThreadProblem{Problem: pgagui.Problem{
				Problem:  fmt.Sprintf("chain: the thread is gone, and no erasure in agui.erasure is newer than its head at seq %d and counts its events", head.Seq),
				Severity: pgagui.Damage,
			}})
		}
	}
	if len(found.Problems) == 0 {
		found.Notes = []pgagui.Problem{{Problem: "chain: the thread was erased (agui.erasure)", Severity: pgagui.Note}}
	}
	return found, nil
}
