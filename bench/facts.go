package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/db"
	"github.com/pgagui/pgagui/internal/memory"
	"github.com/pgagui/pgagui/jobs"
)

// factScopes is how many scopes share the conversations of the phase facts.
const factScopes = 1000

// factAnswers are what the conversations of the phase facts add up to.
type factAnswers struct {
	failedCalls, waiting, tokens int64
	refunds                      int // messages with the word refund
}

// facts asks all conversations at once: it makes a store of many threads in many scopes with known answers, projects it, and checks and
// measures questions, searches and pages of changes.
func (b *bench) facts(ctx context.Context) error {
	threads := b.sizes.factThreads
	if b.Share > 0 {
		threads = max(2, int(float64(threads)*b.Share))
	}
	if err := b.projection(ctx, min(threads, 5000)); err != nil {
		return err
	}
	database, err := b.server.create(ctx, 8)
	if err != nil {
		return err
	}
	b.Progress(fmt.Sprintf("facts: make %s threads in %d scopes", number3(float64(threads)), factScopes))
	known, err := database.fillFacts(ctx, threads)
	if err != nil {
		return err
	}
	runs := number3(float64(threads)) + " runs"
	taking := func(what string, work func() error) error {
		b.Progress("facts: " + what)
		begin := time.Now()
		err := work()
		b.report.addFigure("facts", what, "µs/run", float64(time.Since(begin).Microseconds())/float64(threads))
		return err
	}
	project := func(options jobs.ProjectOptions) func() error {
		return func() error {
			// A transaction in progress, of autovacuum for example, holds the last runs back.
			for left := 1; left > 0; {
				if _, err := jobs.Project(ctx, database.Pool, options); err != nil {
					return err
				}
				options.Rebuild = false
				if err := database.QueryRow(ctx, `
					select count(*) from agui.run left join agui.projected_run as projected using (thread_key, run_no)
					where projected.run_no is null`).Scan(&left); err != nil {
					return err
				}
			}
			return nil
		}
	}
	if err := taking("projection, "+runs, project(jobs.ProjectOptions{})); err != nil {
		return err
	}
	if err := database.store.EnableSearch(ctx, "english"); err != nil {
		return err
	}
	if err := taking("projection with search", project(jobs.ProjectOptions{})); err != nil {
		return err
	}
	if err := database.vacuum(ctx, "agui.run", "agui.projected_run", "agui.projected_call", "agui.projected_interrupt", "agui.projected_usage", "agui.message_text"); err != nil {
		return err
	}
	var texts, log int64
	if err := database.QueryRow(ctx, `select pg_total_relation_size('agui.message_text'), pg_total_relation_size('agui.batch')`).Scan(&texts, &log); err != nil {
		return err
	}
	b.report.add(Measurement{Phase: "facts", What: "texts and their index", Unit: "bytes", Ours: Side{Name: "texts"}, Against: Side{Name: "the log"}}, []float64{float64(texts)}, []float64{float64(log)})
	if err := b.checkFacts(ctx, database, known); err != nil {
		return err
	}

	scope := func(i int) *pgagui.Store { return database.store.InScope(fmt.Sprint("scope-", i%factScopes)) }
	search := func(query string, allScopes bool) func(context.Context, int) error {
		return func(ctx context.Context, i int) error {
			_, err := scope(i).Search(ctx, query, pgagui.SearchOptions{AllScopes: allScopes})
			return err
		}
	}
	const indexed, filtered = "pgagui", "scope as a filter"
	measured, err := b.rounds(ctx, "facts: search",
		b.reading(indexed, search("order", false)),
		b.reading(filtered, func(ctx context.Context, i int) error {
			_, err := database.Exec(ctx, `
				select ts_rank(words, wanted, 1)
				from agui.message_text, websearch_to_tsquery('english', 'order') as wanted
				where words @@ wanted and thread_key between agui_internal.first_key($1) and agui_internal.last_key($1)
				order by 1 desc limit 20`, fmt.Sprint("scope-", i%factScopes))
			return err
		}))
	if err != nil {
		return err
	}
	b.report.add(Measurement{
		Phase: "facts", What: "search of a word that each message has, in one scope of " + number3(factScopes), Unit: "ms",
		Ours: Side{Name: indexed}, Against: Side{Name: filtered},
	}, inMilliseconds(measured[indexed]), inMilliseconds(measured[filtered]))

	var figures notes
	var after string
	for round := range 1 + b.Repeat {
		b.Progress(fmt.Sprintf("facts: questions, round %d of %d", round, b.Repeat))
		all := database.store.FactsOfAllScopes()
		for _, question := range []struct {
			what string
			ask  func() error
		}{
			{"page of 1,000 changes", func() error {
				changes, err := database.store.Changes(ctx, pgagui.ChangesOptions{After: after, AllScopes: true})
				if len(changes) > 0 {
					after = changes[len(changes)-1].Position
				}
				return err
			}},
			{"report of all scopes", func() error { _, err := all.Report(ctx, time.Time{}); return err }},
			{"report of a scope", func() error { _, err := scope(round).Facts().Report(ctx, time.Time{}); return err }},
			{"what waits in all scopes, the first 100", func() error { _, err := all.Waiting(ctx, pgagui.WaitingOptions{}); return err }},
			{"search of a rare word in all scopes", func() error { return search("zanzibar", true)(ctx, round) }},
			{"search of a word that one message in 20 has, in all scopes", func() error { return search("refund", true)(ctx, round) }},
		} {
			begin := time.Now()
			if err := question.ask(); err != nil {
				return err
			}
			figures.add(question.what, "ms", 1000*time.Since(begin).Seconds())
		}
	}
	b.report.addFigures("facts", figures)
	return database.drop(ctx)
}

// projection compares the CPU that the projection and compaction take, each for a copy of the same runs.
func (b *bench) projection(ctx context.Context, runs int) error {
	const projection, inGo, inSQL = "projection", "compaction in Go", "compaction in SQL"
	store, err := b.server.create(ctx, 8)
	if err != nil {
		return err
	}
	if _, err := store.fillFacts(ctx, runs); err != nil {
		return err
	}
	measured, err := b.rounds(ctx, "facts: CPU of "+number3(float64(runs))+" runs",
		b.ofCopies(store, projection, func(ctx context.Context, copied *database) error {
			_, err := jobs.Project(ctx, copied.Pool, jobs.ProjectOptions{})
			return err
		}),
		b.ofCopies(store, inGo, func(ctx context.Context, copied *database) error {
			_, err := jobs.Compact(ctx, copied.Pool, jobs.CompactOptions{Workers: 1})
			return err
		}),
		b.ofCopies(store, inSQL, func(ctx context.Context, copied *database) error {
			_, err := copied.Exec(ctx, "call agui.compact()")
			return err
		}))
	if err != nil {
		return err
	}
	for _, against := range []string{inGo, inSQL} {
		b.report.add(Measurement{
			Phase: "facts", What: "CPU of a projection, " + number3(float64(runs)) + " short runs", Unit: "s",
			Ours: Side{Name: projection}, Against: Side{Name: against}, Target: atMost("F1", map[string]float64{inGo: 0.10, inSQL: 0.20}[against]),
		}, measured[projection], measured[against])
	}
	return store.drop(ctx)
}

// ofCopies measures the CPU, in seconds, that work on a copy of a database takes: of the sessions, and of this process in its own code.
func (b *bench) ofCopies(of *database, name string, work func(context.Context, *database) error) side {
	return side{name, func(ctx context.Context) (seconds float64, err error) {
		copied, err := b.server.copy(ctx, of)
		if err != nil {
			return 0, err
		}
		before := memory.CPU(os.Getpid())
		if err := work(ctx, copied); err != nil {
			return 0, err
		}
		taken := memory.CPU(os.Getpid()) - before
		for _, session := range copied.sessionsSoFar() {
			taken += memory.Scheduled(session)
		}
		return taken.Seconds(), copied.drop(ctx)
	}}
}

// checkFacts compares what the questions answer with what is known.
func (b *bench) checkFacts(ctx context.Context, database *database, known factAnswers) error {
	report, err := database.store.FactsOfAllScopes().Report(ctx, time.Time{})
	if err != nil {
		return err
	}
	var got factAnswers
	for _, tool := range report.Tools {
		got.failedCalls += tool.Failed
	}
	for _, model := range report.Models {
		got.tokens += int64(model.TotalTokens)
	}
	options := pgagui.SearchOptions{AllScopes: true, Limit: 1000}
	for isMore := true; isMore; isMore = options.Cursor != "" {
		page, err := database.store.Search(ctx, "refund", options)
		if err != nil {
			return err
		}
		got.refunds += len(page.Messages)
		options.Cursor = page.Cursor
	}
	waiting, err := database.store.FactsOfAllScopes().Waiting(ctx, pgagui.WaitingOptions{Limit: 1_000_000})
	if err != nil {
		return err
	}
	if got.waiting = int64(len(waiting)); got != known {
		return fmt.Errorf("the questions answer %+v, but the conversations have %+v", got, known)
	}
	return nil
}

// fillFacts appends conversations of one run, each with a question, a tool call and an answer of a sentence or two.
func (d *database) fillFacts(ctx context.Context, threads int) (known factAnswers, err error) {
	const perCall = 100
	vocabulary := strings.Fields("about after agent answer before between check could date email every first from have help into item later mail next number other please price question ready right shipping should still take that them time under want week where with would year")
	group, groupContext := errgroup.WithContext(ctx)
	group.SetLimit(runtime.NumCPU())
	random := rand.New(rand.NewPCG(1, 2))
	sentence := func(n int) string {
		said := []string{"order"}
		for range 12 + random.IntN(20) {
			said = append(said, vocabulary[random.IntN(len(vocabulary))])
		}
		if n%20 == 0 {
			said = append(said, "refund")
			known.refunds++
		}
		if n == 7 {
			said = append(said, "Zanzibar")
		}
		return strings.Join(said, " ")
	}
	for from := 0; from < threads; from += perCall {
		var calls db.AppendManyParams
		for n := from; n < min(from+perCall, threads); n++ {
			thread := fmt.Sprint("thread-", n)
			result, end := `{\"found\":true}`, fmt.Sprintf(`{"type":"RUN_FINISHED","usage":[{"provider":"p","model":"m%d","inputTokens":%d,"outputTokens":20}]}`, n%3, n%100)
			known.tokens += int64(n%100 + 20)
			if n%7 == 0 {
				result = `{\"error\":\"no connection\"}`
				known.failedCalls++
			}
			if n%50 == 0 {
				end = strings.TrimSuffix(end, "}") + fmt.Sprintf(`,"outcome":{"type":"interrupt","interrupts":[{"id":"i-%d","reason":"approval"}]}}`, n)
				known.waiting++
			}
			input, err := json.Marshal(map[string]any{"threadId": thread, "runId": "run", "messages": []any{map[string]any{"id": "q", "role": "user", "content": sentence(n)}}})
			if err != nil {
				return known, err
			}
			events := []string{
				string(runStarted(thread, "run")), `{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"look_up"}`, `{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{}"}`,
				`{"type":"TOOL_CALL_END","toolCallId":"c"}`, fmt.Sprintf(`{"type":"TOOL_CALL_RESULT","messageId":"r","toolCallId":"c","content":"%s"}`, result),
				`{"type":"TEXT_MESSAGE_START","messageId":"a","role":"assistant"}`,
			}
			for piece := range strings.SplitAfterSeq(sentence(1), " ") {
				events = append(events, fmt.Sprintf(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"a","delta":%q}`, piece))
			}
			events = append(events, `{"type":"TEXT_MESSAGE_END","messageId":"a"}`, end)
			text := string(input)
			calls.ThreadIds, calls.RunIds, calls.Scopes = append(calls.ThreadIds, thread), append(calls.RunIds, "run"), append(calls.Scopes, fmt.Sprint("scope-", n%factScopes))
			calls.Events, calls.Inputs = append(calls.Events, "["+strings.Join(events, ",")+"]"), append(calls.Inputs, &text)
		}
		calls.Wait, calls.Durable = true, true
		group.Go(func() error {
			answers, err := db.New(d).AppendMany(groupContext, calls)
			for _, answer := range answers {
				if answer.ErrorCode != "" {
					return errors.New(answer.Error)
				}
			}
			return err
		})
	}
	return known, group.Wait()
}
