package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/rawjson"
)

// threadCompaction compacts runs of one thread in one transaction, which holds the thread's row.
//
// The log is read once, in the order of seq. Runs in parallel interleave there, so several folds are open at a time. The parent
// of a run has ended before the run began: when the first batch of the run comes, the fold of its parent is complete.
//
// Rows to write are collected while a page of the log is folded, and sent together with the query for the next page.
type threadCompaction struct {
	tx         pgx.Tx
	queries    *db.Queries
	key        pgtype.UUID
	dueBy      *time.Time // runs that ended later are left alone; nil: none is
	foldLimits compaction.Limits
	meter      meter
	isOver     func() bool // the time of the job is over

	inputs     inputPlaces        // of the runs to compact
	folds      map[int32]*runFold // by run number; a fold is dropped when no run needs it any more
	tip        int32
	lastRunNo  int32 // of those to compact
	lastNumber int32 // of the thread's message versions
	messages   db.AddMessagesParams
	snapshots  []db.AddSnapshotParams
	compacted  db.MarkCompactedParams
	result     Compacted
}

// runFold is what a run's lineage means so far.
type runFold struct {
	fold *compaction.Fold
	// users counts the runs of this transaction that continue from here and have not begun yet.
	users int
	// events and logBytes are the size of the run's own log, sinceKept is that of its lineage after the last kept snapshot; in
	// stored bytes.
	events, logBytes, sinceKept int64
}

const (
	// What rows take beside the documents in them, as agui_internal.snapshot_bytes has it.
	snapshotRowBytes = 100
	messageRowBytes  = 60
)

// compact compacts one run or (runNo 0) up to maxRuns of the runs that are due.
func (t *threadCompaction) compact(ctx context.Context, at target, maxRuns int32) (Compacted, error) {
	runs := db.RunsToCompactParams{ThreadKey: t.key, DueBy: t.dueBy, RunNo: at.runNo, AfterNo: at.afterNo, MaxRuns: maxRuns}
	pending, err := t.queries.RunsToCompact(ctx, runs)
	if err == nil && len(pending) == 0 && runs.AfterNo > 0 {
		runs.AfterNo = 0 // something was appended to one of those that were done, or one ended late
		pending, err = t.queries.RunsToCompact(ctx, runs)
	}
	if err != nil || len(pending) == 0 {
		return Compacted{}, err
	}
	t.lastRunNo = pending[len(pending)-1].RunNo
	t.meter.isAlone = t.meter.room.isAll && len(pending) == 1
	if t.tip, err = t.queries.Tip(ctx, t.key); err != nil {
		return Compacted{}, err
	}
	if t.lastNumber, err = t.queries.LastMessageNo(ctx, t.key); err != nil {
		return Compacted{}, err
	}
	// Snapshots from when these runs were in progress are replaced by ones from their parents' folds, which are at hand.
	numbers := make([]int32, len(pending))
	for i, run := range pending {
		numbers[i] = run.RunNo
	}
	if err := t.queries.DropSnapshots(ctx, db.DropSnapshotsParams{ThreadKey: t.key, RunNos: numbers}); err != nil {
		return Compacted{}, err
	}
	// The old tip may have a snapshot only because it was the tip. Folds use its message versions until this transaction ends.
	oldTip, err := t.queries.PreviousTip(ctx, t.key)
	if err != nil {
		return Compacted{}, err
	}
	if err := t.loadParents(ctx, pending); err != nil {
		return Compacted{}, err
	}
	err = t.foldLog(ctx, pending, numbers)
	isCut := errors.Is(err, errOver)
	if err != nil && !isCut {
		return Compacted{}, err
	}
	for _, run := range pending {
		if !isCut && !slices.Contains(t.compacted.RunNos, run.RunNo) {
			return Compacted{}, fmt.Errorf("the log has no event at seq %d, where run number %d ends (pgagui verify names all that is wrong)", run.LastSeq, run.RunNo)
		}
	}
	t.compacted.ThreadKey = t.key
	if err := t.queries.MarkCompacted(ctx, t.compacted); err != nil {
		return Compacted{}, err
	}
	if t.result.Snapshots > 0 && oldTip != 0 {
		dropped, err := t.queries.DropNeedlessSnapshot(ctx, db.DropNeedlessSnapshotParams{ThreadKey: t.key, RunNo: oldTip})
		if err != nil {
			return Compacted{}, err
		}
		if dropped {
			t.result.Dropped++
		}
	}
	return t.result, nil
}

// loadParents makes the folds that the pending runs continue from, where those are not pending themselves, and counts their users.
func (t *threadCompaction) loadParents(ctx context.Context, pending []db.RunsToCompactRow) error {
	for _, run := range pending {
		t.folds[run.RunNo] = &runFold{}
	}
	for _, run := range pending {
		if run.ParentNo == nil {
			continue
		}
		parent, known := t.folds[*run.ParentNo]
		if !known {
			var err error
			if parent, err = t.load(ctx, *run.ParentNo); err != nil {
				return err
			}
			t.folds[*run.ParentNo] = parent
		}
		parent.users++
	}
	return nil
}

// load folds the lineage of a run that has been processed before, from its nearest snapshot on.
func (t *threadCompaction) load(ctx context.Context, runNo int32) (*runFold, error) {
	baseNo, err := t.queries.FoldBase(ctx, db.FoldBaseParams{ThreadKey: t.key, RunNo: runNo})
	if err != nil {
		return nil, err
	}
	loaded := &runFold{fold: newFold(t.foldLimits)}
	var throughSeq int64
	if baseNo != 0 {
		if loaded.fold, throughSeq, err = t.loadSnapshot(ctx, baseNo); err != nil {
			return nil, err
		}
	}
	if baseNo != runNo {
		loaded.sinceKept, err = t.queries.LogBytesSince(ctx, db.LogBytesSinceParams{ThreadKey: t.key, RunNo: runNo, BaseNo: baseNo})
		if err != nil {
			return nil, err
		}
	}
	lineage, err := t.queries.LineageBehind(ctx, db.LineageBehindParams{ThreadKey: t.key, RunNo: runNo, BaseNo: baseNo})
	if err != nil {
		return nil, err
	}
	for _, run := range lineage {
		inputs, err := t.inputPlaces(ctx, []int32{run.RunNo}, []int64{run.LastSeq})
		if err != nil {
			return nil, err
		}
		fromSeq := max(run.FirstSeq, throughSeq+1)
		err = t.eachBatch(ctx, fromSeq, run.LastSeq, []int32{run.RunNo}, inputs, func(batch db.BatchesBetweenRow) error {
			if err := inputs.applyBatch(loaded.fold, batch); err != nil {
				return err
			}
			return t.took(len(batch.Events)+len(batch.Input), loaded.fold)
		})
		if err == nil {
			err = loaded.fold.EndRun()
		}
		if err != nil {
			return nil, err
		}
	}
	return loaded, nil
}

func (t *threadCompaction) loadSnapshot(ctx context.Context, runNo int32) (fold *compaction.Fold, throughSeq int64, err error) {
	most := t.meter.room.mostBytes()
	stored, err := t.queries.SnapshotAt(ctx, db.SnapshotAtParams{ThreadKey: t.key, RunNo: runNo, MostBytes: most})
	if err != nil {
		return nil, 0, err
	}
	messages, err := t.queries.SnapshotMessages(ctx, db.SnapshotMessagesParams{ThreadKey: t.key, RunNo: runNo, MostBytes: most})
	if err != nil {
		return nil, 0, err
	}
	if stored.State == nil {
		return nil, 0, errTooLarge
	}
	snapshot := compaction.Snapshot{
		State: json.RawMessage(stored.State), Interrupts: json.RawMessage(stored.Interrupts), Lanes: json.RawMessage(stored.Lanes),
	}
	size := len(stored.State) + len(stored.Interrupts) + len(stored.Lanes)
	for _, message := range messages {
		if message.Body == nil {
			return nil, 0, errTooLarge
		}
		size += len(message.Body)
		snapshot.Messages = append(snapshot.Messages, compaction.StoredMessage{Version: message.MessageNo, Body: json.RawMessage(message.Body)})
	}
	fold, err = compaction.Resume(snapshot)
	if err != nil {
		return nil, 0, fmt.Errorf("snapshot of run number %d: %w", runNo, err)
	}
	fold.SetLimits(t.foldLimits)
	return fold, stored.ThroughSeq, t.took(size, fold)
}

// took notes what the folds took in; others are those that are not a run's yet.
func (t *threadCompaction) took(bytes int, others ...*compaction.Fold) error {
	return t.meter.took(bytes, func() []*compaction.Fold {
		for _, run := range t.folds {
			if run.fold != nil {
				others = append(others, run.fold)
			}
		}
		return others
	})
}

func (t *threadCompaction) inputPlaces(ctx context.Context, runNumbers []int32, throughSeqs []int64) (inputPlaces, error) {
	return placesOf(t.queries.InputPlaces(ctx, db.InputPlacesParams{ThreadKey: t.key, RunNos: runNumbers, ThroughSeqs: throughSeqs}))
}

// errOver ends foldLog when the time of the job is over and a run is done.
var errOver = errors.New("the time is over")

// foldLog reads the log of the pending runs and finishes each run when its last batch has come. When the time is over, it fails with
// errOver: the runs that are finished by then are written, the others are not. At least one is always finished.
func (t *threadCompaction) foldLog(ctx context.Context, pending []db.RunsToCompactRow, numbers []int32) error {
	runs := make(map[int32]db.RunsToCompactRow, len(pending))
	fromSeq, throughSeq := pending[0].FirstSeq, int64(0)
	lastSeqs := make([]int64, len(pending))
	for i, run := range pending {
		runs[run.RunNo] = run
		lastSeqs[i] = run.LastSeq
		throughSeq = max(throughSeq, run.LastSeq)
	}
	var err error
	if t.inputs, err = t.inputPlaces(ctx, numbers, lastSeqs); err != nil {
		return err
	}
	return t.eachBatch(ctx, fromSeq, throughSeq, numbers, t.inputs, func(batch db.BatchesBetweenRow) error {
		run := runs[batch.RunNo]
		if batch.FirstSeq > run.LastSeq {
			return nil // appended after its end in the meantime: the next call compacts it
		}
		current := t.folds[run.RunNo]
		if current == nil {
			return fmt.Errorf("the batches of run number %d overlap: one reached its end before that at seq %d (pgagui verify names all that is wrong)",
				run.RunNo, batch.FirstSeq)
		}
		if current.fold == nil {
			if err := t.begin(run, current); err != nil {
				return err
			}
		}
		if err := t.inputs.applyBatch(current.fold, batch); err != nil {
			return fmt.Errorf("batch at seq %d: %w", batch.FirstSeq, err)
		}
		current.logBytes += batch.StoredBytes
		current.events += int64(batch.N)
		if batch.FirstSeq+int64(batch.N) > run.LastSeq {
			if err := current.fold.EndRun(); err != nil {
				return err
			}
			t.finish(run, current)
		}
		if t.result.Runs > 0 && t.result.Runs < len(pending) && t.isOver() {
			return errOver
		}
		return t.took(len(batch.Events) + len(batch.Input))
	})
}

// begin gives a run its parent's fold to continue from: the fold itself when no other run needs it, else a clone.
func (t *threadCompaction) begin(run db.RunsToCompactRow, current *runFold) error {
	if run.ParentNo == nil {
		current.fold = newFold(t.foldLimits)
		return nil
	}
	parent := t.folds[*run.ParentNo]
	if parent == nil || parent.fold == nil {
		return fmt.Errorf("the log has no events of run number %d, which run number %d continues from", *run.ParentNo, run.RunNo)
	}
	current.sinceKept = parent.sinceKept
	parent.users--
	if parent.users > 0 {
		current.fold = parent.fold.Clone()
		return nil
	}
	current.fold = parent.fold
	delete(t.folds, *run.ParentNo)
	return nil
}

// finish keeps the run's snapshot where it is worth it and notes the run as compacted.
func (t *threadCompaction) finish(run db.RunsToCompactRow, current *runFold) {
	current.logBytes += run.InputBytes
	current.sinceKept += current.logBytes
	if (run.RunNo == t.tip || isWorthKeeping(current)) && !t.inputs.awaitsStart(run.RunNo) {
		t.keep(run, current.fold)
		current.sinceKept = 0
		t.result.Snapshots++
	}
	if current.users == 0 {
		delete(t.folds, run.RunNo)
	}
	t.result.Runs++
	t.result.Events += current.events
	t.result.LogBytes += current.logBytes
	t.compacted.RunNos = append(t.compacted.RunNos, run.RunNo)
	t.compacted.LastSeqs = append(t.compacted.LastSeqs, run.LastSeq)
	t.compacted.Ns = append(t.compacted.Ns, current.events)
	t.compacted.LogBytes = append(t.compacted.LogBytes, current.logBytes)
}

// isWorthKeeping is the rule of agui_internal.is_worth_keeping. It compares uncompressed sizes, and what is
// stored is smaller. So it errs on the side of fewer snapshots, and no row is written only to be dropped.
func isWorthKeeping(current *runFold) bool {
	affordable := current.sinceKept/2 - int64(snapshotRowBytes+current.fold.StateSize()+len(current.fold.Interrupts()))
	for _, message := range current.fold.Messages() {
		if affordable < 0 {
			break
		}
		if message.Version == 0 {
			affordable -= int64(message.Size() + messageRowBytes)
		}
	}
	return affordable >= 0
}

// keep collects the run's snapshot, and those of its messages that are new versions.
func (t *threadCompaction) keep(run db.RunsToCompactRow, fold *compaction.Fold) {
	state, isPrinted := fold.StoredState()
	snapshot := db.AddSnapshotParams{
		ThreadKey: t.key, RunNo: run.RunNo, ThroughSeq: run.LastSeq,
		State: rawjson.String(state), PrintState: !isPrinted, Interrupts: rawjson.Text(fold.Interrupts()), Lanes: rawjson.Text(fold.Lanes()),
	}
	t.meter.unwritten += int64(len(state))
	for _, message := range fold.Messages() {
		if message.Version == 0 {
			t.lastNumber++
			message.Version = t.lastNumber
			t.messages.MessageNos = append(t.messages.MessageNos, message.Version)
			t.messages.MessageIds = append(t.messages.MessageIds, plainText(message.ID()))
			t.messages.Roles = append(t.messages.Roles, plainText(message.Role()))
			body, isPrinted := message.StoredJSON()
			t.messages.Bodies = append(t.messages.Bodies, rawjson.String(body))
			t.messages.Print = append(t.messages.Print, !isPrinted)
			t.meter.unwritten += int64(len(body))
		}
		// The list is kept as ranges: a message whose version follows that of the one before it lengthens the last range.
		if last := len(snapshot.Highs) - 1; last >= 0 && snapshot.Highs[last] == message.Version {
			snapshot.Highs[last]++
		} else {
			snapshot.Lows = append(snapshot.Lows, message.Version)
			snapshot.Highs = append(snapshot.Highs, message.Version+1)
		}
	}
	t.snapshots = append(t.snapshots, snapshot)
}

// plainText returns the text, or "" if PostgreSQL's type text cannot hold it or if it has escapes: then the
// database reads it from the message.
func plainText(text string) string {
	if !utf8.ValidString(text) || strings.ContainsAny(text, "\x00\\") {
		return ""
	}
	return text
}

// queueWrites moves what was collected into a batch of statements, and returns how many they are.
func (t *threadCompaction) queueWrites(statements *pgx.Batch) int {
	if len(t.snapshots) == 0 {
		return 0
	}
	m := t.messages
	statements.Queue(db.AddMessages, t.key, m.MessageNos, m.MessageIds, m.Roles, m.Bodies, m.Print)
	for _, s := range t.snapshots {
		statements.Queue(db.AddSnapshot, s.ThreadKey, s.RunNo, s.ThroughSeq, s.Lows, s.Highs, s.State, s.PrintState, s.Interrupts, s.Lanes)
	}
	t.messages, t.snapshots = db.AddMessagesParams{}, nil
	return statements.Len()
}

// logPage is what fetch reads.
type logPage struct {
	batches []db.BatchesBetweenRow
	written int64 // bytes
	err     error
}

// eachBatch reads the batches of some runs between two seqs, a page at a time, in the order of the log, and writes what is collected.
// While a page is folded, the server writes what the pages before it gave and reads the next one: use must not work on the connection.
func (t *threadCompaction) eachBatch(
	ctx context.Context, fromSeq, throughSeq int64, runNumbers []int32, inputs inputPlaces, use func(db.BatchesBetweenRow) error,
) error {
	inputSeqs := inputs.seqs()
	isOver := false
	next := t.fetch(ctx, fromSeq, throughSeq, runNumbers, inputSeqs)
	for next != nil {
		page := <-next
		t.meter.unwritten -= page.written
		if page.err != nil {
			return page.err
		}
		next = nil
		if len(page.batches) == 0 {
			break
		}
		last := page.batches[len(page.batches)-1]
		if last.PageBytes > t.meter.room.mostBytes() {
			return errTooLarge
		}
		fetchNext := func() { next = t.fetch(ctx, last.FirstSeq+int64(last.N), throughSeq, runNumbers, inputSeqs) }
		// A batch that is larger than a page is alone in memory.
		isLarge := last.PageBytes > t.meter.room.pageBytes()
		if last.HasMore && !isLarge {
			fetchNext()
		}
		for _, batch := range page.batches {
			err := guarded(func() error { return use(batch) })
			if err == nil {
				continue
			}
			if next != nil {
				// Then the connection is free. What is done counts only if it could be written.
				if following := <-next; err == errOver && following.err != nil {
					err = following.err
				}
			}
			if err != errOver {
				return err
			}
			next, isOver = nil, true
			break
		}
		if isOver {
			break
		}
		if last.HasMore && isLarge {
			page.batches, last.Events, last.Input = nil, nil, nil
			fetchNext()
		}
	}
	var statements pgx.Batch
	if t.queueWrites(&statements) > 0 {
		if err := t.tx.SendBatch(ctx, &statements).Close(); err != nil {
			return err
		}
		t.meter.unwritten = 0
	}
	if isOver {
		return errOver
	}
	return nil
}

// fetch writes what was collected so far and reads a page, beside its caller.
func (t *threadCompaction) fetch(ctx context.Context, fromSeq, throughSeq int64, runNumbers []int32, inputSeqs []int64) <-chan logPage {
	var statements pgx.Batch
	writes := t.queueWrites(&statements)
	statements.Queue(db.BatchesBetween,
		t.meter.room.mostBytes(), inputSeqs, t.key, fromSeq, runNumbers, throughSeq, mostPageBatches, t.meter.room.pageBytes())
	unwritten := t.meter.unwritten
	fetched := make(chan logPage, 1)
	go func() {
		results := t.tx.SendBatch(ctx, &statements)
		page := readPage(results, writes)
		page.written = unwritten
		page.err = errors.Join(page.err, results.Close())
		fetched <- page
	}()
	return fetched
}

func readPage(results pgx.BatchResults, writes int) (page logPage) {
	for range writes {
		if _, page.err = results.Exec(); page.err != nil {
			return page
		}
	}
	rows, err := results.Query()
	if err != nil {
		return logPage{err: err}
	}
	page.batches, page.err = pgx.CollectRows(rows, pgx.RowToStructByPos[db.BatchesBetweenRow])
	return page
}
