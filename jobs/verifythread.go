package jobs

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/jsontree"
	"github.com/pgagui/pgagui/internal/rawjson"
)

// snapshotCheck compares the snapshots of a thread with its raw log. It finds what agui_internal.verify_snapshots finds, with the reducer in Go.
//
// The log is read once, in the order of seq, and only the lineages that lead to a snapshot are folded. No snapshot is trusted: every
// fold begins with the first event of its root.
type snapshotCheck struct {
	queries    *db.Queries
	key        pgtype.UUID
	foldLimits compaction.Limits
	meter      meter

	runs     map[int32]*runCheck
	inputs   inputs
	numbers  []int32 // of the runs, in order
	problems map[int32]string
}

// runCheck is a run on its way through the log.
type runCheck struct {
	db.RunsToVerifyRow
	parent *runCheck // nil: a root
	// isWhole says that all ancestors are there and had ended before their children began.
	isWhole bool
	// isChecked says that the snapshot, if there is one, has been compared.
	isChecked bool

	isFolded   bool // it or a descendant has a snapshot to compare
	children   int  // that are folded and have not begun yet
	fold       *compaction.Fold
	isHandedOn bool  // the last child has the fold
	failure    error // of the fold or an ancestor's
}

// run returns the problems in the order of the runs. If the folds of all lineages together take too
// much memory, it compares the snapshots in parts, and reads the log for each part.
func (c *snapshotCheck) run(ctx context.Context) (problems []pgagui.Problem, err error) {
	rows, err := c.queries.RunsToVerify(ctx, c.key)
	if err != nil {
		return nil, err
	}
	room := c.meter.room
	part := len(rows)
	for from := 0; from < len(rows); {
		c.meter = meter{room: room, isAlone: room.isAll && part == 1}
		found, err := c.runPart(ctx, rows, from, min(from+part, len(rows)))
		if room.isAll && errors.Is(err, errTooLarge) {
			part = max(1, part/8)
			continue
		}
		if err != nil {
			return nil, err
		}
		problems = append(problems, found...)
		from += part
	}
	return problems, nil
}

// runPart compares the snapshots of the rows between two places.
func (c *snapshotCheck) runPart(ctx context.Context, rows []db.RunsToVerifyRow, from, to int) (problems []pgagui.Problem, err error) {
	c.runs, c.problems, c.numbers = make(map[int32]*runCheck, len(rows)), map[int32]string{}, nil
	for i, row := range rows[:to] {
		c.add(row, i >= from)
	}
	if err := c.foldLog(ctx); err != nil {
		return nil, err
	}
	for _, number := range c.numbers[from:] {
		// Where the log lacks what the snapshot should be compared after, that has not been done yet.
		if err := c.compare(ctx, c.runs[number]); err != nil {
			return nil, err
		}
		if problem := c.problems[number]; problem != "" {
			problems = append(problems, pgagui.Problem{RunID: c.runs[number].RunID, Problem: problem, Severity: pgagui.Damage})
		}
	}
	return problems, nil
}

// add adds a run, with its snapshot if withSnapshot. The runs with smaller numbers are known.
func (c *snapshotCheck) add(row db.RunsToVerifyRow, withSnapshot bool) {
	run := &runCheck{RunsToVerifyRow: row, isChecked: row.ThroughSeq == nil || !withSnapshot}
	if row.ParentNo != nil {
		run.parent = c.runs[*row.ParentNo]
	}
	run.isWhole = (row.Status == string(pgagui.Running) || row.LastSeq != nil) &&
		(row.ParentNo == nil || run.parent != nil && run.parent.isWhole && run.parent.lastSeq() < row.FirstSeq)
	c.numbers = append(c.numbers, row.RunNo)
	c.runs[row.RunNo] = run
	switch {
	case run.isChecked:
	case !run.isWhole:
		c.set(run, "the snapshot cannot be compared with the log: the lineage of the run is broken")
	case *row.ThroughSeq < row.FirstSeq || *row.ThroughSeq > run.lastSeq():
		last := "(in progress)"
		if row.LastSeq != nil {
			last = fmt.Sprint(*row.LastSeq)
		}
		c.set(run, fmt.Sprintf("the snapshot goes through seq %d, the run from seq %d to seq %s", *row.ThroughSeq, row.FirstSeq, last))
	default:
		for next := run; next != nil && !next.isFolded; next = next.parent {
			next.isFolded = true
			if next.parent != nil {
				next.parent.children++
			}
		}
	}
}

// lastSeq returns where a run ends. A run in progress ends after every seq.
func (r *runCheck) lastSeq() int64 {
	const never = 1<<63 - 1
	if r.Status == string(pgagui.Running) {
		return never
	}
	return *r.LastSeq
}

// untilSeq returns how far the run is folded.
func (r *runCheck) untilSeq() int64 {
	if r.children == 0 && r.ThroughSeq != nil {
		return *r.ThroughSeq
	}
	return r.lastSeq()
}

// foldLog reads the log and compares each snapshot when the fold comes to it.
func (c *snapshotCheck) foldLog(ctx context.Context) error {
	var numbers []int32
	var throughSeq int64
	var lastSeqs []int64
	for _, number := range c.numbers {
		if run := c.runs[number]; run.isFolded {
			numbers = append(numbers, number)
			lastSeqs = append(lastSeqs, run.lastSeq())
			throughSeq = max(throughSeq, run.untilSeq())
		}
	}
	if numbers == nil {
		return nil
	}
	var err error
	if c.inputs, err = readInputs(ctx, c.queries, c.key, numbers, lastSeqs, nil); err != nil {
		return err
	}
	c.inputs.readAsStored()
	if err := c.meter.took(c.inputs.bytes, c.folds); err != nil {
		return err
	}
	next := db.BatchesBetweenParams{
		ThreadKey: c.key, ThroughSeq: throughSeq, RunNos: numbers, InputSeqs: c.inputs.seqs(),
		FromSeq: c.runs[numbers[0]].FirstSeq, // a root, which is older than its descendants
		Page:    mostPageBatches, PageBytes: c.meter.room.pageBytes(), MostBytes: c.meter.room.mostBytes(),
	}
	for hasMore := true; hasMore; {
		// A page is in memory as a whole, for the connection is needed while it is folded.
		page, err := c.queries.BatchesBetween(ctx, next)
		if err != nil {
			return err
		}
		hasMore = false
		for _, batch := range page {
			if batch.PageBytes > next.MostBytes {
				return errTooLarge
			}
			if err := c.apply(ctx, c.runs[batch.RunNo], batch); err != nil {
				return err
			}
			if err := c.meter.took(len(batch.Events)+len(batch.Input), c.folds); err != nil {
				return err
			}
			hasMore, next.FromSeq = batch.HasMore, batch.FirstSeq+1 // n may be wrong
		}
	}
	return nil
}

// folds returns the folds of the runs that are in memory.
func (c *snapshotCheck) folds() (folds []*compaction.Fold) {
	for _, run := range c.runs {
		if run.fold != nil {
			folds = append(folds, run.fold)
		}
	}
	return folds
}

func (c *snapshotCheck) apply(ctx context.Context, run *runCheck, batch db.BatchesBetweenRow) error {
	lastSeq := batch.FirstSeq + int64(batch.N) - 1
	if run.isHandedOn || lastSeq < run.FirstSeq || batch.FirstSeq > run.lastSeq() {
		return nil // the log is damaged: the run continues after its children have begun, or beyond its bounds
	}
	if err := c.begin(ctx, run); err != nil || run.failure != nil {
		return err
	}
	cutsBatch := func(seq int64) bool { return batch.FirstSeq <= seq && seq < lastSeq }
	if batch.FirstSeq < run.FirstSeq || lastSeq > run.lastSeq() || c.inputs.countsIn(batch) || !run.isChecked && cutsBatch(*run.ThroughSeq) {
		return c.applyEvents(ctx, run, batch)
	}
	run.fold.Locate(batch.RunID, batch.FirstSeq)
	if _, err := run.fold.ApplyBatch(batch.Events); err != nil {
		run.failure = err
		if run.fold.Err() == nil {
			run.failure = fmt.Errorf("the batch at seq %d is not an array of events", batch.FirstSeq)
		}
		return nil
	}
	if !run.isChecked && *run.ThroughSeq == lastSeq {
		return c.compare(ctx, run)
	}
	return nil
}

// applyEvents folds a batch event by event. It is needed if the snapshot ends within the batch, if
// the input of the run counts at one of its events, or if the batch exceeds the bounds of the run.
func (c *snapshotCheck) applyEvents(ctx context.Context, run *runCheck, batch db.BatchesBetweenRow) error {
	seq := batch.FirstSeq
	for event, err := range compaction.Split(batch.Events) {
		if err != nil {
			run.failure = fmt.Errorf("the batch at seq %d is not an array of events", batch.FirstSeq)
			return nil
		}
		if run.FirstSeq <= seq && seq <= run.lastSeq() {
			c.inputs.apply(run.fold, batch, seq, event)
		}
		if !run.isChecked && *run.ThroughSeq == seq {
			if err := c.compare(ctx, run); err != nil {
				return err
			}
		}
		seq++
	}
	return nil
}

// begin gives a run its parent's fold to continue from, unless it has one.
func (c *snapshotCheck) begin(ctx context.Context, run *runCheck) error {
	if run.fold != nil {
		return nil
	}
	if run.parent == nil {
		run.fold = newFold(c.foldLimits)
		return nil
	}
	// The parent's fold is complete. It has not come to its snapshot if the log lost the events there.
	if err := c.compare(ctx, run.parent); err != nil {
		return err
	}
	if err := c.begin(ctx, run.parent); err != nil {
		return err
	}
	if err := run.parent.fold.EndRun(); err != nil && run.parent.failure == nil {
		run.parent.failure = err
	}
	run.failure = run.parent.failure
	run.parent.children--
	if run.parent.children > 0 {
		run.fold = run.parent.fold.Clone()
	} else {
		run.fold, run.parent.fold, run.parent.isHandedOn = run.parent.fold, nil, true
	}
	return nil
}

// compare compares the snapshot of a run with its fold, unless that has been done.
func (c *snapshotCheck) compare(ctx context.Context, run *runCheck) error {
	if run.isChecked {
		return nil
	}
	run.isChecked = true
	if err := c.begin(ctx, run); err != nil {
		return err
	}
	if run.failure == nil {
		run.failure = run.fold.Err()
	}
	if run.failure != nil {
		c.set(run, "the snapshot cannot be compared with the log: "+run.failure.Error())
		return nil
	}
	difference, err := c.difference(ctx, run)
	if err == nil && difference != "" {
		c.set(run, "the snapshot is not what the log says: "+difference)
	}
	return err
}

// difference returns the first difference between the snapshot of a run and its fold, in the words
// of agui_internal.fold_difference.
func (c *snapshotCheck) difference(ctx context.Context, run *runCheck) (string, error) {
	snapshot, err := c.queries.SnapshotToVerify(ctx, db.SnapshotToVerifyParams{
		ThreadKey: c.key, RunNo: run.RunNo, MostBytes: c.meter.room.mostBytes(),
	})
	if err != nil {
		return "", err
	}
	if snapshot.State == nil {
		return "", errTooLarge
	}
	versions, err := c.versions(ctx, run, snapshot)
	if err != nil {
		return "", err
	}
	if difference, err := c.messageDifference(ctx, versions, run.fold.Messages()); difference != "" || err != nil {
		return difference, err
	}
	switch {
	case !jsontree.Equal(snapshot.State, run.fold.State()):
		return "the state differs", nil
	case !jsontree.Equal(snapshot.Interrupts, run.fold.Interrupts()):
		return "the interrupts differ", nil
	case !jsontree.Equal(lanes(snapshot.Lanes), lanes(run.fold.Lanes())):
		return "the open chunk streams differ", nil
	}
	return "", nil
}

// versions returns the message versions of a snapshot, in order. Damaged ranges can be of any
// length: if they do not hold as many versions as the fold, only those are returned that exist.
func (c *snapshotCheck) versions(ctx context.Context, run *runCheck, snapshot db.SnapshotToVerifyRow) ([]int32, error) {
	length := int64(0)
	for i, low := range snapshot.Lows {
		length += int64(snapshot.Highs[i]) - int64(low)
	}
	var versions []int32
	if length != int64(len(run.fold.Messages())) {
		stored, err := c.queries.SnapshotMessages(ctx, db.SnapshotMessagesParams{ThreadKey: c.key, RunNo: run.RunNo}) // without bodies
		for _, message := range stored {
			versions = append(versions, message.MessageNo)
		}
		return versions, err
	}
	for i, low := range snapshot.Lows {
		for version := low; version < snapshot.Highs[i]; version++ {
			versions = append(versions, version)
		}
	}
	return versions, nil
}

// messageDifference compares the message versions of a snapshot with those of the fold, in order.
// It reads only the versions that no earlier snapshot had at the same place. So the check takes
// time in proportion to the messages of the thread, not to those of each snapshot.
func (c *snapshotCheck) messageDifference(ctx context.Context, versions []int32, folded []*compaction.Message) (string, error) {
	var unread []int32
	for i, version := range versions {
		// A message whose version is set has been compared with that version before.
		if i >= len(folded) || folded[i].Version != version {
			unread = append(unread, version)
		}
	}
	bodies := make(map[int32]rawjson.Text, len(unread))
	if len(unread) > 0 {
		rows, err := c.queries.MessageBodies(ctx, db.MessageBodiesParams{ThreadKey: c.key, MessageNos: unread, MostBytes: c.meter.room.mostBytes()})
		if err != nil {
			return "", err
		}
		for _, row := range rows {
			if row.Body == nil {
				return "", errTooLarge
			}
			bodies[row.MessageNo] = row.Body
		}
	}
	missing := 0
	for _, version := range unread {
		if _, found := bodies[version]; !found {
			missing++
		}
	}
	if stored := len(versions) - missing; stored != len(folded) {
		return fmt.Sprintf("%d messages instead of %d", stored, len(folded)), nil
	}
	for i, version := range versions {
		if i < len(folded) && folded[i].Version == version {
			continue
		}
		body, found := bodies[version]
		if !found || !jsontree.Equal([]byte(body), folded[i].JSON()) {
			return fmt.Sprintf("message %d of %d differs", i+1, len(folded)), nil
		}
		folded[i].Version = version
	}
	return "", nil
}

// lanes returns open chunk streams as a JSON array, which is empty if there are none.
func lanes(stored []byte) []byte {
	if stored == nil {
		return []byte("[]")
	}
	return stored
}

func (c *snapshotCheck) set(run *runCheck, problem string) {
	run.isChecked = true
	c.problems[run.RunNo] = problem
}
