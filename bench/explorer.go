package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/explorer"
	"github.com/pgagui/pgagui/server/access"
)

// explorer measures pages of a long thread in the explorer, beside what a reader should wait at most: in
// the handler alone, and in a browser if there is one.
func (b *bench) explorer(ctx context.Context) error {
	database, thread, err := b.loadLongThread(ctx, "explorer")
	if err != nil {
		return err
	}
	runs, err := database.store.Runs(ctx, thread.ThreadID)
	if err != nil {
		return err
	}
	middle, last := runs[len(runs)/2], runs[len(runs)-1]
	at := func(page string, run pgagui.Run, seq int64) string {
		return page + "?" + url.Values{"id": {thread.ThreadID}, "run": {run.ID}, "seq": {strconv.FormatInt(seq, 10)}}.Encode()
	}
	page := "thread?" + url.Values{"id": {thread.ThreadID}}.Encode()
	warm := openPages(database.Pool)
	defer warm.Close()
	fresh := func(ctx context.Context, pool *pgxpool.Pool, page string) error {
		pages := openPages(pool)
		defer pages.Close()
		return pages.get(ctx, page)
	}
	rows := []budget{
		{"the page of a thread, handler", 60, b.reading("warm", func(ctx context.Context, _ int) error { return warm.get(ctx, page) })},
		{"the page of a run in the middle, handler", 150, b.reading("warm", func(ctx context.Context, _ int) error { return warm.get(ctx, at("thread", middle, 0)) })},
		{"the page of a thread, handler, on new connections", 150, b.reading("cold", func(ctx context.Context, _ int) error {
			pool, err := pgxpool.NewWithConfig(ctx, database.Config())
			if err != nil {
				return err
			}
			defer pool.Close()
			return fresh(ctx, pool, page)
		})},
		{"the first step in the last run, handler", 150, b.reading("first", func(ctx context.Context, _ int) error {
			return fresh(ctx, database.Pool, at("time", last, last.LastSeq-5))
		})},
		{"the first step in a run in the middle, handler", 150, b.reading("first", func(ctx context.Context, i int) error {
			run := runs[(len(runs)/2+i)%len(runs)]
			return fresh(ctx, database.Pool, at("time", run, (run.FirstSeq+run.LastSeq)/2))
		})},
		{"a step, handler", 10, repeated("next", int(last.LastSeq-last.FirstSeq), func(ctx context.Context, i int) error {
			return warm.get(ctx, at("time", last, last.FirstSeq+int64(i)))
		})},
	}
	site := httptest.NewServer(warm)
	defer site.Close()
	tab, end, err := openTab(ctx)
	if err != nil {
		b.Progress("explorer: the figures of a browser are left out: " + err.Error())
	} else {
		defer end()
		rows = append(rows,
			budget{"the first paint of a thread, in a browser", 300, tab.median(b.sizes.reads, func() (float64, error) { return tab.paint(ctx, site.URL+"/"+page) })},
			budget{"a step, in a browser", 60, tab.median(1, func() (float64, error) {
				return tab.step(ctx, site.URL+"/"+at("time", last, last.FirstSeq), min(50, int(last.LastSeq-last.FirstSeq)))
			})})
	}
	for _, row := range rows {
		measured, err := b.rounds(ctx, "explorer: "+row.what, row.measured)
		if err != nil {
			return err
		}
		values := inMilliseconds(measured[row.measured.name])
		b.report.add(Measurement{
			Phase: "explorer", What: fmt.Sprintf("%s, %d runs and %d events", row.what, len(runs), thread.Events()), Unit: "ms",
			Ours: Side{Name: "explorer"}, Against: Side{Name: "at most"}, Target: atMost("explorer", 1),
		}, values, slices.Repeat([]float64{row.most}, len(values)))
	}
	if err := b.stepsInMemory(ctx, database.Pool, runs, at); err != nil {
		return err
	}
	return database.drop(ctx)
}

// budget is a figure with what it may be, in milliseconds.
type budget struct {
	what     string
	most     float64
	measured side
}

// stepsInMemory measures what the runs that readers stepped through take.
func (b *bench) stepsInMemory(ctx context.Context, pool *pgxpool.Pool, runs []pgagui.Run, at func(string, pgagui.Run, int64) string) error {
	heap := func() float64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return float64(stats.HeapAlloc)
	}
	pages := openPages(pool)
	defer pages.Close()
	if err := pages.get(ctx, at("time", runs[0], runs[0].FirstSeq)); err != nil {
		return err
	}
	before := heap()
	seen := runs[len(runs)*3/4:]
	for _, run := range seen {
		for _, seq := range []int64{run.FirstSeq, run.LastSeq} {
			if err := pages.get(ctx, at("time", run, seq)); err != nil {
				return err
			}
		}
	}
	b.report.addFigure("explorer", fmt.Sprintf("memory after steps through %d runs", len(seen)), "MB", max(heap()-before, 0)/1e6)
	runtime.KeepAlive(pages)
	return nil
}

// pages is an explorer that takes every request.
type pages struct{ *explorer.Handler }

func openPages(pool *pgxpool.Pool) pages {
	return pages{explorer.New(pgagui.New(pool, nil), explorer.Options{Access: access.Anonymous("", access.Admin), Limits: access.LimitOptions{RequestsPerSecond: -1}})}
}

func (p pages) get(ctx context.Context, page string) error {
	recorder := httptest.NewRecorder()
	p.ServeHTTP(recorder, httptest.NewRequestWithContext(ctx, http.MethodGet, "/"+page, nil))
	if recorder.Code != http.StatusOK {
		return fmt.Errorf("%s: %d %s", page, recorder.Code, recorder.Body)
	}
	return nil
}

// tab is a tab of a browser.
type tab struct{ browser context.Context }

// openTab starts a browser.
func openTab(ctx context.Context) (_ tab, end func(), err error) {
	program := cmp.Or(os.Getenv("PGAGUI_TEST_CHROMIUM"), "/usr/bin/chromium")
	if _, err := exec.LookPath(program); err != nil {
		return tab{}, nil, fmt.Errorf("there is no browser: %w (Debian: chromium)", err)
	}
	allocated, endAllocator := chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox)...)
	browser, endBrowser := chromedp.NewContext(allocated)
	end = func() {
		_ = chromedp.Cancel(browser) // waits for the end of the browser
		endBrowser()
		endAllocator()
	}
	if err := chromedp.Do(browser, chromedp.EmulateViewport(1440, 900)); err != nil {
		end()
		return tab{}, nil, err
	}
	return tab{browser}, end, nil
}

// median is a side that measures the median of so many figures, in milliseconds.
func (t tab) median(times int, figure func() (float64, error)) side {
	return side{"a browser", func(context.Context) (float64, error) {
		var all []float64
		for range times {
			value, err := figure()
			if err != nil {
				return 0, err
			}
			all = append(all, value)
		}
		return SpreadOf(all).Median / 1000, nil
	}}
}

// paint returns when the first paint of a page is, from the click on.
func (t tab) paint(ctx context.Context, address string) (float64, error) {
	if err := chromedp.Do(t.browser, chromedp.Navigate(address)); err != nil {
		return 0, err
	}
	for ctx.Err() == nil {
		value, err := chromedp.Run(t.browser, chromedp.Evaluate[float64](`performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0`))
		if err != nil || value > 0 {
			return value, err
		}
		time.Sleep(5 * time.Millisecond)
	}
	return 0, ctx.Err()
}

// step returns the median of steps to the next event.
func (t tab) step(ctx context.Context, address string, steps int) (float64, error) {
	if err := chromedp.Do(t.browser, chromedp.Navigate(address)); err != nil {
		return 0, err
	}
	script := fmt.Sprintf(`window.took = undefined; (async () => {
		const took = [];
		for (let step = 0; step < %d; step++) {
			const begin = performance.now();
			const stepped = new Promise((done) => document.addEventListener("stepped", done, { once: true }));
			document.querySelector("time-line a[rel=next]").click();
			await stepped;
			document.body.offsetHeight; // the layout is part of it
			took.push(performance.now() - begin);
		}
		window.took = took;
	})(); true`, steps)
	if _, err := chromedp.Run(t.browser, chromedp.Evaluate[bool](script)); err != nil {
		return 0, err
	}
	for ctx.Err() == nil {
		took, err := chromedp.Run(t.browser, chromedp.Evaluate[[]float64](`window.took ?? []`))
		if err != nil {
			return 0, err
		}
		if len(took) == steps && steps > 0 {
			return SpreadOf(took).Median, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return 0, errors.Join(errors.New("the steps did not end"), ctx.Err())
}
