package read

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/eventjson"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/ingest"
	"github.com/pgagui/pgagui/compaction"
	"github.com/pgagui/pgagui/internal/eventfile"
)

// exportOptions select the events to export and their format.
type exportOptions struct {
	all      bool // threads of the scope
	runID    string
	lineage  bool
	compact  string
	requests string // path of the file
	null     bool
}

// allThreads returns the ids of the threads of the scope, in order, and says if there are others.
func (p *program) allThreads(command *cobra.Command) (ids []string, err error) {
	ctx := command.Context()
	err = p.WithSnapshot(ctx, func(store *pgagui.Store, tx pgx.Tx) error {
		threads, _, err := p.listThreads(ctx, store, pgagui.ThreadsOptions{Archived: pgagui.WithArchived, Limit: 1000}, true)
		for _, thread := range threads {
			ids = append(ids, thread.ID)
		}
		if err == nil && tx != nil && (len(ids) == 0 || !cli.ScopeIsGiven(command)) {
			err = p.HintAtOtherScopes(ctx, tx, "are not exported")
		}
		return err
	})
	slices.Sort(ids)
	return ids, err
}

func (p *program) export(ctx context.Context, store *pgagui.Store, threads []string, options exportOptions) (err error) {
	beside := besideEvents{p: p, options: options}
	if err := beside.create(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, beside.close()) }()
	out := newEventWriter(p.Out, options.null, "pgagui events")
	for _, beside.threadID = range threads {
		err := exportThread(ctx, store, out, &beside)
		if err != nil && !isGone(err, options) {
			return err
		}
	}
	return out.Flush()
}

// isGone reports whether an export of all threads came to one that has no runs, or none any more.
func isGone(err error, options exportOptions) bool {
	return options.all && errors.Is(err, pgagui.ErrUnknownThread)
}

func exportThread(ctx context.Context, store *pgagui.Store, out eventWriter, beside *besideEvents) error {
	threadID, options := beside.threadID, beside.options
	runs, err := runsUpTo(ctx, store, threadID, options)
	if err != nil {
		return err
	}
	if !options.lineage {
		runs = runs[len(runs)-1:]
	}
	for n, run := range runs {
		namedParent, hasStarted := "", false
		for event, err := range store.Events(ctx, threadID, pgagui.EventsOptions{RunID: run.ID, NoLineage: true}) {
			if err != nil {
				return err
			}
			if err := out.write(event.JSON, "event %d of thread %q (run %q)", event.Seq, threadID, run.ID); err != nil {
				return err
			}
			if !hasStarted && compaction.EventType(event.JSON) == "RUN_STARTED" {
				namedParent, hasStarted = eventjson.TextMember(event.JSON, "parentRunId"), true
			}
			beside.check(run, event)
		}
		input, err := store.RunInput(ctx, pgagui.RunRef{ThreadID: threadID, RunID: run.ID})
		if err != nil && !errors.Is(err, pgagui.ErrUnknownInput) {
			return err
		}
		head := "" // the head at this point of an import
		if n > 0 {
			head = runs[n-1].ID
		} else if !options.lineage {
			head = run.ParentRunID
		}
		answered, err := answerOfAgent(ctx, store, pgagui.RunRef{ThreadID: threadID, RunID: run.ID}, run.RunEnd)
		if err != nil {
			return err
		}
		if err := beside.write(run, input, answered, namedParent, head); err != nil {
			return err
		}
	}
	return nil
}

// besideEvents writes the data that the log keeps beside the events, or counts what the export
// leaves out.
type besideEvents struct {
	p        *program
	threadID string
	options  exportOptions

	file *os.File
	out  eventWriter

	inputs, parents, answers int // left out of the export

	// split assigns the exported events to runs as import would. misplaced is the first run of
	// which it assigns an event to another run; "" if there is none.
	split     ingest.Splitter
	exported  []ingest.RunName // the actual runs of the events that split has not assigned yet
	misplaced string
}

func (b *besideEvents) create() (err error) {
	if b.options.requests == "" {
		return nil
	}
	if b.file, err = os.Create(b.options.requests); err == nil {
		b.out = newEventWriter(b.file, b.options.null, "pgagui events")
	}
	return err
}

// check notes whether import would assign the event to another run.
func (b *besideEvents) check(run pgagui.Run, event pgagui.Event) {
	if b.misplaced != "" {
		return
	}
	b.exported = append(b.exported, ingest.RunName{ThreadID: b.threadID, RunID: run.ID})
	assigned, err := b.split.Add(eventfile.Event{Raw: event.JSON})
	b.compare(assigned, err)
}

func (b *besideEvents) compare(assigned []ingest.RunEvent, err error) {
	for n, event := range assigned {
		if b.misplaced == "" && event.Run != b.exported[n] {
			b.misplaced = b.exported[n].String()
		}
	}
	if err != nil && b.misplaced == "" && len(b.exported) > 0 {
		b.misplaced = b.exported[len(b.exported)-1].String()
	}
	b.exported = b.exported[len(assigned):]
}

// write writes the request of a run. If the input alone identifies the run and its parent, it is
// written without an envelope.
func (b *besideEvents) write(run pgagui.Run, input json.RawMessage, answered *pgagui.AgentError, namedParent, head string) error {
	request := &ingest.Request{}
	if input != nil {
		if given, err := ingest.ReadRequest(input); err == nil {
			request = given
		}
	}
	parent := namedParent
	if parent == "" && request.Parent != nil {
		parent = *request.Parent
	}
	parent = cmp.Or(parent, head)
	if b.file == nil {
		if input != nil {
			b.inputs++
		}
		if parent != run.ParentRunID {
			b.parents++
		}
		if answered != nil {
			b.answers++
		}
		return nil
	}
	switch line := []byte(nil); {
	case input == nil && answered == nil && parent == run.ParentRunID:
		return nil
	case answered == nil && request.IsBody && request.Run == ingest.RunName{ThreadID: b.threadID, RunID: run.ID} && parent == run.ParentRunID:
		return b.out.write(input, "the input of run %q of thread %q", run.ID, b.threadID)
	default:
		line = fmt.Appendf(line, `{"threadId":%s,"runId":%s`, eventjson.Quote(b.threadID), eventjson.Quote(run.ID))
		if parent != run.ParentRunID || answered != nil { // an import reads no parent in the input then
			line = fmt.Appendf(line, `,"parentRunId":%s`, eventjson.Quote(run.ParentRunID))
		}
		if input != nil {
			line = append(append(line, `,"input":`...), input...)
		}
		if answered != nil {
			answered.RecordedAt = time.Time{} // an import records it as of then
			text, err := json.Marshal(answered)
			if err != nil {
				return err
			}
			line = append(append(line, `,"agentError":`...), text...)
		}
		return b.out.write(append(line, '}'), "the input of run %q of thread %q", run.ID, b.threadID)
	}
}

// close completes the file, and prints on stderr what was left out.
func (b *besideEvents) close() error {
	b.compare(b.split.End())
	if b.misplaced != "" {
		fmt.Fprintf(b.p.Messages, "import would assign some events of %s to another run: export the run alone (--run, --lineage=false) and import it with --thread and --run\n", b.misplaced)
	}
	if b.file != nil {
		return errors.Join(b.out.Flush(), b.file.Close())
	}
	if b.inputs > 0 {
		fmt.Fprintf(b.p.Messages, "left out: %s with the user's messages (--requests FILE writes them)\n", cli.CountText(b.inputs, "input"))
	}
	if b.answers > 0 {
		fmt.Fprintf(b.p.Messages, "left out: %s of agents in place of events (--requests FILE writes them)\n", cli.CountText(b.answers, "answer"))
	}
	if b.parents > 0 {
		fmt.Fprintf(b.p.Messages, "left out: %s that no event names (--requests FILE writes them)\n", cli.CountText(b.parents, "parent"))
	}
	return nil
}

func (p *program) exportCompacted(
	ctx context.Context, store *pgagui.Store, threads []string, options exportOptions, shape compaction.Shape,
) error {
	limits, err := store.Maintenance().FoldLimits(ctx)
	if err != nil {
		return err
	}
	out := newEventWriter(p.Out, options.null, "pgagui events")
	for _, threadID := range threads {
		err := exportCompactedThread(ctx, store, out, threadID, options, shape, limits)
		if err != nil && !isGone(err, options) {
			return err
		}
	}
	return out.Flush()
}

// exportCompactedThread compacts run by run. Each run is compacted after a fold of its lineage, so it
// reads all ancestors, too.
func exportCompactedThread(
	ctx context.Context, store *pgagui.Store, out eventWriter, threadID string, options exportOptions, shape compaction.Shape, limits compaction.Limits,
) error {
	runs, err := runsUpTo(ctx, store, threadID, options)
	if err != nil {
		return err
	}
	children := map[string]int{} // by parent: the number of children not yet read
	for _, run := range runs {
		children[run.ParentRunID]++
	}
	lineages := map[string]*compaction.Fold{} // by run: the fold of its lineage, while children need it
	for i, run := range runs {
		lineage := compaction.New()
		lineage.SetLimits(limits)
		if run.ParentRunID != "" {
			lineage = lineages[run.ParentRunID]
			if children[run.ParentRunID]--; children[run.ParentRunID] > 0 {
				lineage = lineage.Clone()
			} else {
				delete(lineages, run.ParentRunID)
			}
		}
		if children[run.ID] > 0 {
			lineages[run.ID] = lineage
		}
		var events []json.RawMessage
		var thinking compaction.Thinking
		for event, err := range store.Events(ctx, threadID, pgagui.EventsOptions{RunID: run.ID, NoLineage: true}) {
			if err != nil {
				return err
			}
			events = append(events, thinking.AsReasoning(event.JSON, run.ID, event.Seq))
		}
		input, err := store.RunInput(ctx, pgagui.RunRef{ThreadID: threadID, RunID: run.ID})
		if err != nil && !errors.Is(err, pgagui.ErrUnknownInput) {
			return err
		}
		events = withBeginning(events, input, ingest.RunName{ThreadID: threadID, RunID: run.ID}, lineage.HasOpenChunks())
		if options.lineage || i == len(runs)-1 {
			if i < len(runs)-1 && run.Status != pgagui.Running {
				events = closed(events, lineage)
			}
			compacted, err := compaction.CompactEvents(events, shape, lineage)
			if err != nil {
				return fmt.Errorf("thread %q, run %q: %w", threadID, run.ID, err)
			}
			for _, event := range compacted {
				if err := out.write(event, "an event of thread %q (run %q)", threadID, run.ID); err != nil {
					return err
				}
			}
		}
		for _, event := range events {
			lineage.Apply(event)
		}
		if err := lineage.EndRun(); err != nil {
			return fmt.Errorf("thread %q, run %q: %w", threadID, run.ID, err)
		}
	}
	return nil
}

// closed ends what a run has left open, because the RUN_STARTED of another one follows: it began again
// behind its end, for example.
func closed(events []json.RawMessage, lineage *compaction.Fold) []json.RawMessage {
	next := json.RawMessage(`{"type":"RUN_STARTED","threadId":"","runId":""}`)
	repaired := compaction.RepairEvents(append(slices.Clone(events), next), lineage)
	return repaired[:len(repaired)-1]
}

// withBeginning adds the stored input of a run (nil: none) to its RUN_STARTED, unless that has an
// input, and inserts a RUN_STARTED into a run that begins with another event. A RUN_STARTED ends
// the chunk streams that the lineage has left open. So if there are any (hasLanes), it is inserted
// only for an input.
func withBeginning(events []json.RawMessage, input json.RawMessage, run ingest.RunName, hasLanes bool) []json.RawMessage {
	started := slices.IndexFunc(events, func(event json.RawMessage) bool { return compaction.EventType(event) == "RUN_STARTED" })
	if started >= 0 && input != nil && !eventjson.HasObject(events[started], "input") {
		events[started] = compaction.WithInput(events[started], input)
	}
	if started == 0 || len(events) == 0 || hasLanes && (started > 0 || input == nil) {
		return events
	}
	beginning := json.RawMessage(fmt.Appendf(nil, `{"type":"RUN_STARTED","threadId":%s,"runId":%s}`, eventjson.Quote(run.ThreadID), eventjson.Quote(run.RunID)))
	if started < 0 && input != nil {
		beginning = compaction.WithInput(beginning, input)
	}
	return slices.Insert(events, 0, beginning)
}

// eventWriter writes events, each followed by a line end or, with null, by a NUL byte.
type eventWriter struct {
	*bufio.Writer
	null    bool
	command string // named in errors
}

func newEventWriter(w io.Writer, null bool, command string) eventWriter {
	return eventWriter{bufio.NewWriterSize(w, 1<<16), null, command}
}

// write writes an event. It refuses an event that contains a line end, unless null is set; format
// and arguments describe the event for the error.
func (w eventWriter) write(event []byte, format string, arguments ...any) error {
	end := byte('\n')
	if w.null {
		end = 0
	} else if bytes.IndexByte(event, '\n') >= 0 {
		if err := w.Flush(); err != nil {
			return err
		}
		return &cli.UsageError{Command: w.command, Problem: fmt.Sprintf(format, arguments...) +
			" contains a line end, so it does not fit on one line: use --null"}
	}
	w.Writer.Write(event) // if it fails, WriteByte returns the error
	return w.WriteByte(end)
}

// runsUpTo returns the lineage of the named run, or all runs of the thread if none is named,
// parents before children.
func runsUpTo(ctx context.Context, store *pgagui.Store, threadID string, options exportOptions) ([]pgagui.Run, error) {
	if options.runID == "" && options.lineage {
		return store.Runs(ctx, threadID)
	}
	return store.Lineage(ctx, pgagui.RunRef{ThreadID: threadID, RunID: options.runID})
}
