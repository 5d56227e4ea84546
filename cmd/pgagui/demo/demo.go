package demo

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/eventjson"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/ingest"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/runlog"
	"github.com/pgagui/pgagui/devpg/cluster"
	"github.com/pgagui/pgagui/jobs"
	"github.com/pgagui/pgagui/sql/schema"
	"github.com/pgagui/pgagui/testdata/recordings"
)

func (p *program) demoCommand() *cobra.Command {
	var keep bool
	command := &cobra.Command{
		Use:   "demo",
		Short: "Demonstrate pgagui on a private PostgreSQL server",
		Long: `Imports recorded conversations, branches one, records an agent while it runs, serves agents over
HTTP, compacts, restores and verifies. It does this on a private PostgreSQL server, which it removes
at the end.

With --database-url or $DATABASE_URL it uses that database instead. It installs the schema agui
there, which stays, and stores its threads in a scope of its own.`,
		Example: `  pgagui demo
  pgagui demo --keep`,
		Args: cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error { return p.demo(command.Context(), keep) },
	}
	command.Flags().BoolVar(&keep, "keep", false, "keep the server until you press Enter, so that you can try other commands on it")
	return command
}

func (p *program) demo(ctx context.Context, keep bool) (err error) {
	isPrivate := p.DatabaseURL == ""
	if !isPrivate {
		p.Scope = cmp.Or(p.Scope, "pgagui-demo-"+strings.ToLower(rand.Text()[:6]))
		fmt.Fprintf(p.Out, "Your database: the demo installs the schema agui, which stays, and stores its threads in the scope %q.\n", p.Scope)
	} else {
		begin := time.Now()
		server, startErr := cluster.Start(ctx, cluster.Options{})
		if startErr != nil {
			return &cli.UnavailableError{Err: startErr}
		}
		defer func() { err = errors.Join(err, server.Stop()) }()
		p.DatabaseURL = server.URL("postgres")
		fmt.Fprintf(p.Out, "A private PostgreSQL server, started in %s. The demo removes it at the end.\n", cli.DurationText(time.Since(begin)))
	}
	if err := schema.Up(ctx, p.DatabaseURL, schema.OnNotice(p.Notice)); err != nil {
		return err
	}
	pool, err := p.Connect(ctx, 4)
	if err != nil {
		return err
	}
	defer pool.Close()

	show := demonstration{p: p, pool: pool, store: p.Store(pool)}
	for _, step := range []func(context.Context) error{
		show.importRecordings, show.branch, show.live, show.serve, show.compact, show.restore, show.verify, show.sizes,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	var explorer string // the link
	if keep && isPrivate {
		link, end, failed := show.explore(context.WithoutCancel(ctx)) // Ctrl-C ends it in order, too
		if failed != nil {
			return failed
		}
		explorer = link
		defer func() { err = errors.Join(err, end()) }()
	}
	show.next(keep, explorer)
	if keep {
		p.waitForEnter(ctx)
	}
	return nil
}

// waitForEnter returns when Enter is pressed or ctx ends.
func (p *program) waitForEnter(ctx context.Context) {
	enter := make(chan struct{})
	go func() {
		// If stdin has ended, the user cannot press Enter, and only a signal ends the demo.
		if _, err := bufio.NewReader(p.In).ReadString('\n'); err == nil {
			close(enter)
		}
	}()
	select {
	case <-enter:
	case <-ctx.Done():
	}
}

// demonstration is the demo on its database. Each step is a method.
type demonstration struct {
	p     *program
	pool  *pgxpool.Pool
	store *pgagui.Store
}

// demoRecordings are the recordings to import. The others in the folder break the protocol or
// repeat one of these.
var demoRecordings = []string{"trip-to-lisbon.ndjson", "recipe-card.sse", "weather-tools.ndjson"}

const demoThread = "trip-to-lisbon"

func (d *demonstration) title(text string) {
	fmt.Fprintf(d.p.Out, "\n%s\n", text)
}

// table prints indented rows, whose cells are separated by tabs.
func (d *demonstration) table(rows ...string) {
	table := tabwriter.NewWriter(d.p.Out, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(table, "  "+row)
	}
	table.Flush()
}

func (d *demonstration) importRecordings(ctx context.Context) error {
	d.title("Import recorded AG-UI streams (pgagui import FILE…)")
	var rows []string
	for _, name := range demoRecordings {
		done, err := d.importRecording(ctx, name)
		if err != nil {
			return err
		}
		rows = append(rows, fmt.Sprintf("%s\t%s\t%s\t%s\t%s",
			name, cli.CountText(done.Runs, "run"), cli.CountText(done.Events, "event"), cli.BytesText(done.Bytes), cli.DurationText(done.Duration)))
	}
	repeated, err := d.importRecording(ctx, demoRecordings[0])
	if err != nil {
		return err
	}
	d.table(append(rows, fmt.Sprintf("%s\trepeated:\t%s new, %s already there",
		demoRecordings[0], humanize.Comma(repeated.New), humanize.Comma(repeated.AlreadyThere)))...)
	return nil
}

func (d *demonstration) importRecording(ctx context.Context, name string) (ingest.Imported, error) {
	file, err := recordings.Files.Open(name)
	if err != nil {
		return ingest.Imported{}, err
	}
	defer file.Close()
	importer := ingest.New(cli.OneDatabase(d.pool), d.p.Scope, ingest.Options{})
	importer.OnNotice = func(notice string) { fmt.Fprintln(d.p.Messages, notice) }
	err = importer.ImportFile(ctx, name, file)
	return importer.Result(), err
}

// branchEvents are a run that continues from run-3, which waits for an approval. Here the user says
// no; in run-4 the user said yes.
var branchEvents = []json.RawMessage{
	json.RawMessage(`{"type":"RUN_STARTED","threadId":"trip-to-lisbon","runId":"run-8","parentRunId":"run-3","input":{"threadId":"trip-to-lisbon","runId":"run-8","parentRunId":"run-3","messages":[{"id":"user-of-run-8","role":"user","content":"No, too dear. Anything under 100 a night?"}],"tools":[],"context":[],"forwardedProps":{},"resume":[{"interruptId":"book-hotel","status":"resolved","payload":{"approved":false}}]}}`),
	json.RawMessage(`{"type":"TEXT_MESSAGE_START","messageId":"reply-cheaper","role":"assistant"}`),
	json.RawMessage(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"reply-cheaper","delta":"Not booked. "}`),
	json.RawMessage(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"reply-cheaper","delta":"Pensão Amarela has "}`),
	json.RawMessage(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"reply-cheaper","delta":"a room for 88."}`),
	json.RawMessage(`{"type":"TEXT_MESSAGE_END","messageId":"reply-cheaper"}`),
	json.RawMessage(`{"type":"STATE_DELTA","delta":[{"op":"add","path":"/budget/perNight","value":100}]}`),
	json.RawMessage(`{"type":"RUN_FINISHED","threadId":"trip-to-lisbon","runId":"run-8"}`),
}

func (d *demonstration) branch(ctx context.Context) error {
	d.title(`Branch: go back to run-3 and say no (Store.Append, RUN_STARTED with "parentRunId":"run-3")`)
	seq, err := d.store.Append(ctx, pgagui.RunRef{ThreadID: demoThread, RunID: "run-8"}, branchEvents, pgagui.AppendOptions{AfterSeq: new(int64(0))})
	if err != nil {
		return err
	}
	fmt.Fprintf(d.p.Out, "  run-8 is in the log up to seq %d; the events before it are unchanged (pgagui log %s --graph)\n\n", seq, demoThread)
	runs, err := runlog.Read(ctx, d.pool, d.p.Scope, demoThread)
	if err != nil {
		return err
	}
	var picture strings.Builder
	if err := runlog.WriteGraph(&picture, runs, d.p.Colored()); err != nil {
		return err
	}
	for line := range strings.Lines(picture.String()) {
		fmt.Fprint(d.p.Styled(), "  ", line)
	}
	return nil
}

func (d *demonstration) compact(ctx context.Context) error {
	d.title("Compact: fold ended runs into snapshots (pgagui job compact)")
	done, err := jobs.Compact(ctx, d.pool, jobs.CompactOptions{})
	if err != nil {
		return err
	}
	fmt.Fprintf(d.p.Out, "  %s folded, %s kept, in %s\n", cli.CountText(done.Runs, "run"), cli.CountText(done.Snapshots, "snapshot"), cli.DurationText(done.Duration))
	return nil
}

func (d *demonstration) restore(ctx context.Context) error {
	d.title("Restore two branches, and the run before they diverge (pgagui show THREAD --document)")
	for _, runID := range []string{"run-3", "run-4", "run-8"} {
		if err := d.restoreRun(ctx, runID); err != nil {
			return err
		}
	}
	return nil
}

func (d *demonstration) restoreRun(ctx context.Context, runID string) error {
	begin := time.Now()
	restored, err := d.store.Restore(ctx, demoThread, pgagui.At{RunID: runID})
	if err != nil {
		return err
	}
	took := time.Since(begin)
	lineage, err := d.store.Lineage(ctx, pgagui.RunRef{ThreadID: demoThread, RunID: runID})
	if err != nil {
		return err
	}
	var events, eventBytes int64
	for _, run := range lineage {
		for event, err := range d.store.Events(ctx, demoThread, pgagui.EventsOptions{RunID: run.ID, NoLineage: true}) {
			if err != nil {
				return err
			}
			events++
			eventBytes += int64(len(event.JSON))
		}
	}
	fmt.Fprintf(d.p.Out, "  %s: %s in %s and %s, instead of %s in %s\n", runID, cli.CountText(len(restored.Messages), "message"),
		cli.BytesText(int64(len(restored.JSON))), cli.DurationText(took), cli.CountText(events, "event"), cli.BytesText(eventBytes))
	d.table(view(restored)...)
	return nil
}

// demoWidth is the maximum number of characters shown of a text.
const demoWidth = 90

// view summarizes a restored conversation: its last messages, the state, the open interrupts.
func view(restored *pgagui.Restored) []string {
	const lastMessages = 2
	var rows []string
	for _, raw := range restored.Messages {
		var message struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		}
		if json.Unmarshal(raw, &message) != nil || message.Role != "user" && message.Role != "assistant" {
			continue
		}
		if text := eventjson.TextOf(message.Content); text != "" {
			rows = append(rows, "  "+message.Role+"\t"+cli.Shorten(text, demoWidth))
		}
	}
	rows = rows[max(0, len(rows)-lastMessages):]
	rows = append(rows, "  state\t"+stateView(restored.State))
	for _, raw := range restored.Interrupts {
		var interrupt struct {
			Reason  string `json:"reason"`
			Message string `json:"message"`
		}
		if json.Unmarshal(raw, &interrupt) == nil {
			rows = append(rows, "  waits for\t"+cli.Shorten(interrupt.Reason+": "+interrupt.Message, demoWidth))
		}
	}
	return rows
}

// stateView summarizes budget and bookings in the state of the trip, in which the branches differ.
func stateView(state json.RawMessage) string {
	var trip struct {
		Budget struct {
			Total, Spent, PerNight int
			Currency               string
		}
		Bookings []struct{ Hotel, Code string }
	}
	if json.Unmarshal(state, &trip) != nil {
		return cli.Shorten(string(state), demoWidth)
	}
	text := fmt.Sprintf("spent %d of %d %s", trip.Budget.Spent, trip.Budget.Total, trip.Budget.Currency)
	if trip.Budget.PerNight > 0 {
		text += fmt.Sprintf(", at most %d a night", trip.Budget.PerNight)
	}
	if len(trip.Bookings) == 0 {
		return text + ", nothing booked"
	}
	for _, booking := range trip.Bookings {
		text += fmt.Sprintf(", booked %s (%s)", booking.Hotel, booking.Code)
	}
	return text
}

func (d *demonstration) verify(ctx context.Context) error {
	d.title("Verify: every snapshot against a fold of its raw events (pgagui verify)")
	var threads, problems int
	for threadID, err := range d.store.ThreadIDs(ctx) {
		if err != nil {
			return err
		}
		found, err := d.store.Maintenance().Verify(ctx, threadID)
		if err != nil {
			return err
		}
		threads++
		for _, problem := range found {
			problems++
			if err := d.p.PrintProblem("thread "+threadID, problem); err != nil {
				return err
			}
		}
	}
	if problems > 0 {
		return cli.ErrProblems
	}
	fmt.Fprintf(d.p.Out, "  %s, no problem\n", cli.CountText(threads, "thread"))
	return nil
}

func (d *demonstration) sizes(ctx context.Context) error {
	d.title("Sizes")
	var events, raw, stored, snapshots int64
	err := d.pool.QueryRow(ctx, `
		with mine as (
		    select pg_catalog.array_agg(thread_key) as keys from agui.thread where scope operator(pg_catalog.=) $1
		), mine_in_the_log as (
		    select batch.* from agui.batch join mine on batch.thread_key operator(pg_catalog.=) any (mine.keys)
		)
		select
		    (select pg_catalog.sum(n) from mine_in_the_log),
		    (select pg_catalog.sum(pg_catalog.octet_length(element.value::pg_catalog.text))
		     from mine_in_the_log cross join pg_catalog.json_array_elements(events) as element),
		    (select pg_catalog.sum(pg_catalog.pg_column_size(batch.*))
		     from agui.batch join mine on batch.thread_key operator(pg_catalog.=) any (mine.keys)),
		    (select pg_catalog.sum(pg_catalog.pg_column_size(snapshot.*))
		     from agui.snapshot join mine on snapshot.thread_key operator(pg_catalog.=) any (mine.keys))
		    operator(pg_catalog.+)
		    (select pg_catalog.sum(pg_catalog.pg_column_size(message.*))
		     from agui.message_version as message join mine on message.thread_key operator(pg_catalog.=) any (mine.keys))`, d.p.Scope).
		Scan(&events, &raw, &stored, &snapshots)
	if err != nil {
		return err
	}
	share := func(bytes int64) string { return fmt.Sprintf("%d %%", (bytes*100+raw/2)/raw) }
	d.table(
		fmt.Sprintf("raw events\t%s\t%s", cli.BytesText(raw), cli.CountText(events, "event")),
		fmt.Sprintf("the log as stored\t%s\t%s", cli.BytesText(stored), share(stored)),
		fmt.Sprintf("snapshots with their messages\t%s\t%s", cli.BytesText(snapshots), share(snapshots)),
	)
	return nil
}

func (d *demonstration) next(keep bool, explorer string) {
	d.title("Try next")
	if keep {
		if explorer != "" {
			fmt.Fprintf(d.p.Out, "  See it in a browser: %s\n\n", explorer)
		}
		address, scope := "export DATABASE_URL='"+d.p.DatabaseURL+"'", "" // the private server's password may be shown
		if d.p.Scope != "" {
			address, scope = "export DATABASE_URL=…", " --scope "+d.p.Scope
		}
		d.table(
			address,
			"pgagui explore "+demoThread+scope,
			"pgagui log "+demoThread+" --graph"+scope,
			"pgagui show "+demoThread+" --run run-4"+scope,
			"pgagui show "+demoThread+" --document --run run-4 --at 110"+scope,
			`psql "$DATABASE_URL" -c "select type, count(*) from agui.event group by type"`,
		)
		fmt.Fprint(d.p.Out, "\nEnter or Ctrl-C ends the demo. ")
		return
	}
	d.table(
		"pgagui demo --keep\texplore this database",
		"pgagui dev\ta database, a server and an agent for your front end",
		"pgagui migrate up --database-url postgres://…\tinstall the schema in your own database",
		"pgagui import chat.ndjson --database-url postgres://…\timport your own event streams",
	)
}
