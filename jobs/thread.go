package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/panics"
	"github.com/pgagui/pgagui/internal/rawjson"
)

// threadCompaction compacts runs of one thread in one transaction, which holds the thread's row.
//
// The log is read once, in the order of seq. Runs in parallel interleave there, so several folds are open at a time. The parent
// of a run has ended before the run began: when the first batch of the run comes, the fold of its parent is complete.
//
// Rows to write are collected while a page of the log is folded, and sent together with the query for the next page, or with the last statements.
// So a short thread takes four round trips: to begin, for the log, to store the result and choose the next thread, and to commit.
type threadCompaction struct {
	connection *pgx.Conn
	queries    *db.Queries
	key        pgtype.UUID
	dueBy      *time.Time // runs that ended later are left alone; nil: none is
	foldLimits compaction.Limits
	meter      meter
	isOver     func() bool // the time of the job is over

	pending    []db.RunsToCompactRow // the runs to compact
	inputs     inputs                // of them
	readsAll   bool                  // the text of messages of inputs that the conversations have, too
	folds      map[int32]*runFold    // by run number; a fold is dropped when no run needs it any more
	tip        int32
	lastRunNo  int32 // of those to compact
	carriedNo  int32 // the run whose snapshot the transaction before kept for this one; 0: none
	carriesNo  int32 // the run whose snapshot is kept for the next one
	lastNumber int32 // of the thread's message versions
	messages   db.AddMessagesParams
	snapshots  []db.AddSnapshotParams
	compacted  db.MarkCompactedParams
	doubtful   []int32 // runs whose batches do not follow one another
	result     Compacted
}

// runFold is what a run's lineage means so far.
type runFold struct {
	fold *compaction.Fold
	// users counts the runs of this transaction that continue from here and have not begun yet.
	users int
	// events, batches and logBytes are the size of the run's own log, sinceKept is that of its lineage after the last kept snapshot; in
	// stored bytes.
	events, batches, logBytes, sinceKept int64
	// nextSeq is where its next batch begins, unless events of other runs lie between.
	nextSeq    int64
	isDoubtful bool // one began elsewhere, or holds another number of events than its row says
}

const (
	// What rows take beside the documents in them, as agui_internal.snapshot_bytes has it.
	snapshotRowBytes = 100
	messageRowBytes  = 60
)

// begin begins the transaction, locks the row of the thread, and finds what is due: one run or (runNo 0) up to maxRuns of the thread.
// It reports false if another transaction holds the row.
func (t *threadCompaction) begin(ctx context.Context, at target, maxRuns int32) (isHeld bool, err error) {
	var begin pgx.Batch
	begin.Queue("begin")
	begin.Queue(db.BeginStep)
	begin.Queue(db.HoldThread, at.key).QueryRow(func(row pgx.Row) error { return row.Scan(&isHeld) })
	find := func(batch *pgx.Batch, afterNo int32) {
		queueRows(batch, &t.pending, db.RunsToCompact, t.key, t.dueBy, at.runNo, afterNo, maxRuns)
	}
	find(&begin, at.afterNo)
	if err := t.connection.SendBatch(ctx, &begin).Close(); err != nil || !isHeld {
		return false, err
	}
	if len(t.pending) == 0 && at.afterNo > 0 {
		// Something was appended to one of those that were done, or one ended late.
		var retry pgx.Batch
		find(&retry, 0)
		err = t.connection.SendBatch(ctx, &retry).Close()
	}
	return true, err
}

// compact folds the runs that are due.
func (t *threadCompaction) compact(ctx context.Context) error {
	if len(t.pending) == 0 {
		return nil
	}
	t.lastRunNo = t.pending[len(t.pending)-1].RunNo
	t.meter.isAlone = t.meter.room.isAll && len(t.pending) == 1
	t.tip, t.lastNumber = t.pending[0].Tip, t.pending[0].LastMessageNo
	numbers := make([]int32, len(t.pending))
	hasSnapshots := false
	for i, run := range t.pending {
		numbers[i] = run.RunNo
		hasSnapshots = hasSnapshots || run.HasSnapshot
	}
	if hasSnapshots {
		// Those from when these runs were in progress are replaced by ones from their parents' folds, which are at hand.
		if err := t.queries.DropSnapshots(ctx, db.DropSnapshotsParams{ThreadKey: t.key, RunNos: numbers}); err != nil {
			return err
		}
	}
	if err := t.loadParents(ctx, t.pending); err != nil {
		return err
	}
	err := t.foldLog(ctx, t.pending, numbers)
	syntax := (*compaction.SyntaxError)(nil)
	if err != nil && err != errOver && !errors.As(err, &syntax) {
		return err
	}
	for _, run := range t.pending {
		if err == nil && !slices.Contains(t.compacted.RunNos, run.RunNo) {
			t.doubtful = append(t.doubtful, run.RunNo)
		}
	}
	if len(t.doubtful) == 0 {
		return nil
	}
	// Runs that were in progress at the same time, or damage.
	damage := t.queries.RefuseDamagedLog(ctx, db.RefuseDamagedLogParams{ThreadKey: t.key, RunNos: t.doubtful})
	if damage == nil && syntax != nil {
		return err
	}
	return damage
}

// queueEnd adds the statements that store what is not stored yet and mark the runs as compacted.
func (t *threadCompaction) queueEnd(statements *pgx.Batch) {
	if len(t.compacted.RunNos) == 0 {
		return
	}
	t.queueWrites(statements)
	c := t.compacted
	statements.Queue(db.MarkCompacted, t.key, c.RunNos, c.LastSeqs, c.Ns, c.LogBytes, c.Batches)
	// The old tip may have a snapshot only because it was the tip. Folds have used its message versions until now.
	oldTip := t.pending[0].PreviousTip
	if t.result.Snapshots > 0 && oldTip != 0 {
		t.queueDrop(statements, oldTip)
	}
	if t.carriedNo != 0 && t.carriedNo != oldTip {
		t.queueDrop(statements, t.carriedNo)
	}
}

// queueDrop adds the statement that drops the snapshot of a run unless it is worth keeping.
func (t *threadCompaction) queueDrop(statements *pgx.Batch, runNo int32) {
	statements.Queue(db.DropNeedlessSnapshot, t.key, runNo).QueryRow(func(row pgx.Row) error {
		var isDropped bool
		if err := row.Scan(&isDropped); err != nil {
			return err
		}
		if isDropped {
			t.result.Dropped++
		}
		return nil
	})
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
	var (
		read       pgx.Batch
		stored     []db.SnapshotAtRow
		messages   []db.SnapshotMessagesRow
		lineage    []db.LineageBehindRow
		throughSeq int64
	)
	if baseNo != 0 {
		most := t.meter.room.mostBytes()
		queueRows(&read, &stored, db.SnapshotAt, most, t.key, baseNo)
		queueRows(&read, &messages, db.SnapshotMessages, most, t.key, baseNo)
	}
	if baseNo != runNo {
		read.Queue(db.LogBytesSince, t.key, runNo, baseNo).QueryRow(func(row pgx.Row) error { return row.Scan(&loaded.sinceKept) })
	}
	queueRows(&read, &lineage, db.LineageBehind, t.key, runNo, baseNo)
	if err := t.connection.SendBatch(ctx, &read).Close(); err != nil {
		return nil, err
	}
	if baseNo != 0 {
		if len(stored) == 0 {
			return nil, fmt.Errorf("the snapshot of run number %d is gone", baseNo)
		}
		if loaded.fold, err = t.resume(baseNo, stored[0], messages); err != nil {
			return nil, err
		}
		throughSeq = stored[0].ThroughSeq
	}
	for _, run := range lineage {
		if fromSeq := max(run.FirstSeq, throughSeq+1); fromSeq <= run.LastSeq {
			inputs, err := t.readInputs(ctx, []int32{run.RunNo}, []int64{run.LastSeq}, loaded.fold)
			if err != nil {
				return nil, err
			}
			err = t.eachBatch(ctx, fromSeq, run.LastSeq, []int32{run.RunNo}, inputs, func(batch db.BatchesBetweenRow) error {
				if _, err := inputs.applyBatch(loaded.fold, batch); err != nil {
					return err
				}
				return t.took(len(batch.Events)+len(batch.Input), loaded.fold)
			})
			if err != nil {
				return nil, err
			}
		}
		if err := loaded.fold.EndRun(); err != nil {
			return nil, err
		}
	}
	return loaded, nil
}

// queueRows adds a query to a batch of statements, whose rows are collected.
func queueRows[T any](statements *pgx.Batch, rows *[]T, query string, arguments ...any) {
	statements.Queue(query, arguments...).Query(func(found pgx.Rows) (err error) {
		*rows, err = pgx.CollectRows(found, pgx.RowToStructByPos[T])
		return err
	})
}

// resume makes the fold of a snapshot.
func (t *threadCompaction) resume(runNo int32, stored db.SnapshotAtRow, messages []db.SnapshotMessagesRow) (*compaction.Fold, error) {
	if stored.State == nil {
		return nil, errTooLarge
	}
	snapshot := compaction.Snapshot{
		State: json.RawMessage(stored.State), Interrupts: json.RawMessage(stored.Interrupts), Lanes: json.RawMessage(stored.Lanes),
	}
	size := len(stored.State) + len(stored.Interrupts) + len(stored.Lanes)
	for _, message := range messages {
		if message.Body == nil {
			return nil, errTooLarge
		}
		size += len(message.Body)
		snapshot.Messages = append(snapshot.Messages, compaction.StoredMessage{Version: message.MessageNo, Body: json.RawMessage(message.Body)})
	}
	fold, err := compaction.Resume(snapshot)
	if err != nil {
		return nil, fmt.Errorf("snapshot of run number %d: %w", runNo, err)
	}
	fold.SetLimits(t.foldLimits)
	return fold, t.took(size, fold)
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

// readInputs reads the inputs of runs that continue from a fold; base nil: from others.
func (t *threadCompaction) readInputs(ctx context.Context, runNumbers []int32, throughSeqs []int64, base *compaction.Fold) (inputs, error) {
	var known []string
	if base != nil && !t.readsAll {
		known = base.MessageIDs()
	}
	read, err := readInputs(ctx, t.queries, t.key, runNumbers, throughSeqs, known)
	if err == nil {
		err = t.took(read.bytes)
	}
	return read, err
}

// base returns the fold that all pending runs continue from; nil: there are several, or none.
func (t *threadCompaction) base(pending []db.RunsToCompactRow) (base *compaction.Fold) {
	for _, run := range pending {
		if run.ParentNo == nil {
			return nil
		}
		if parent := t.folds[*run.ParentNo].fold; parent != nil {
			if base != nil && base != parent {
				return nil
			}
			base = parent
		}
	}
	return base
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
	if slices.ContainsFunc(pending, func(run db.RunsToCompactRow) bool { return run.HasInput }) {
		var err error
		if t.inputs, err = t.readInputs(ctx, numbers, lastSeqs, t.base(pending)); err != nil {
			return err
		}
	}
	return t.eachBatch(ctx, fromSeq, throughSeq, numbers, t.inputs, func(batch db.BatchesBetweenRow) error {
		run := runs[batch.RunNo]
		if batch.FirstSeq > run.LastSeq {
			return nil // appended after its end in the meantime: the next call compacts it
		}
		current := t.folds[run.RunNo]
		if current == nil { // another batch has reached its end
			t.doubtful = append(t.doubtful, run.RunNo)
			return nil
		}
		if current.fold == nil {
			if err := t.beginFold(run, current); err != nil {
				return err
			}
			current.nextSeq = run.FirstSeq
		}
		n, err := t.inputs.applyBatch(current.fold, batch)
		if err != nil {
			t.doubtful = append(t.doubtful, run.RunNo)
			return fmt.Errorf("batch at seq %d: %w", batch.FirstSeq, err)
		}
		if batch.FirstSeq != current.nextSeq || n != int(batch.N) {
			current.isDoubtful = true
		}
		current.nextSeq = batch.FirstSeq + int64(batch.N)
		current.logBytes += batch.StoredBytes
		current.events += int64(batch.N)
		current.batches++
		if current.nextSeq > run.LastSeq {
			if current.isDoubtful || current.nextSeq > run.LastSeq+1 {
				t.doubtful = append(t.doubtful, run.RunNo)
			}
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

// beginFold gives a run its parent's fold to continue from: the fold itself when no other run needs it, else a clone.
func (t *threadCompaction) beginFold(run db.RunsToCompactRow, current *runFold) error {
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
	isKept := run.RunNo == t.tip || isWorthKeeping(current)
	isCarried := !isKept && run.RunNo == t.lastRunNo && len(t.pending) == runsPerTransaction
	if (isKept || isCarried) && !t.inputs.awaitsStart(run.RunNo) {
		if isCarried {
			t.carriesNo = run.RunNo
		}
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
	t.compacted.Batches = append(t.compacted.Batches, current.batches)
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
		statements.Queue(db.AddSnapshot, s.ThreadKey, s.RunNo, s.ThroughSeq, s.Lows, s.Highs, s.State, s.PrintState, s.Interrupts, s.Lanes, compaction.Rules)
	}
	t.messages, t.snapshots = db.AddMessagesParams{}, nil
	return statements.Len()
}

// logPage is what fetch reads.
type logPage struct {
	batches []db.BatchesBetweenRow
	texts   []byte // of the batches
	written int64  // bytes
	err     error
}

// logPages has pages to read into once more. Their texts are most of what a job reads, and a fold keeps no part of them.
var logPages = sync.Pool{New: func() any { return new(logPage) }}

// hold copies a text that belongs to the driver.
func (p *logPage) hold(text []byte, pageBytes int64) rawjson.Text {
	if text == nil {
		return nil
	}
	if cap(p.texts)-len(p.texts) < len(text) {
		// With room for the next page, which may be a bit larger. Batches before this one keep their texts.
		p.texts = make([]byte, 0, max(int64(len(text)), pageBytes+pageBytes/4))
	}
	p.texts = append(p.texts, text...)
	return p.texts[len(p.texts)-len(text):]
}

// release gives back a page that is done with.
func (p *logPage) release() {
	clear(p.batches)
	*p = logPage{batches: p.batches[:0], texts: p.texts[:0]}
	logPages.Put(p)
}

// eachBatch reads the batches of some runs between two seqs, a page at a time, in the order of the log.
// While a page is folded, the server writes what the pages before it gave and reads the next one: use must not work on the connection.
func (t *threadCompaction) eachBatch(
	ctx context.Context, fromSeq, throughSeq int64, runNumbers []int32, inputs inputs, use func(db.BatchesBetweenRow) error,
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
			err := panics.Catch(nil, func() error { return use(batch) })
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
			last.Events, last.Input, page.batches, page.texts = nil, nil, nil, nil
			fetchNext()
		}
		page.release()
	}
	if isOver {
		return errOver
	}
	return nil
}

// fetch writes what was collected so far and reads a page, beside its caller.
func (t *threadCompaction) fetch(ctx context.Context, fromSeq, throughSeq int64, runNumbers []int32, inputSeqs []int64) <-chan *logPage {
	var statements pgx.Batch
	writes := t.queueWrites(&statements)
	statements.Queue(db.BatchesBetween,
		t.meter.room.mostBytes(), inputSeqs, t.key, fromSeq, runNumbers, throughSeq, mostPageBatches, t.meter.room.pageBytes())
	unwritten := t.meter.unwritten
	fetched := make(chan *logPage, 1)
	page := logPages.Get().(*logPage)
	page.written = unwritten
	go panics.Task(nil, func() {
		results := t.connection.SendBatch(ctx, &statements)
		page.err = page.read(results, writes)
		page.err = errors.Join(page.err, results.Close())
		fetched <- page
	}, func(err error) {
		page.err = err
		fetched <- page
	})()
	return fetched
}

func (p *logPage) read(results pgx.BatchResults, writes int) error {
	for range writes {
		if _, err := results.Exec(); err != nil {
			return err
		}
	}
	rows, err := results.Query()
	if err != nil {
		return err
	}
	var b db.BatchesBetweenRow
	var events, input pgtype.DriverBytes
	_, err = pgx.ForEachRow(rows, []any{&b.FirstSeq, &b.N, &b.RunNo, &b.RunID, &events, &b.StoredBytes, &input, &b.PageBytes, &b.HasMore}, func() error {
		b.Events, b.Input = p.hold(events, b.PageBytes), p.hold(input, b.PageBytes)
		p.batches = append(p.batches, b)
		return nil
	})
	return err
}
