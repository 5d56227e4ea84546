package explorer_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testfile"
	"github.com/pgagui/pgagui/internal/testneeds"
	"github.com/pgagui/pgagui/internal/wait"
)

// browser is a tab of a browser, which notes what should not happen in it.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	reports  []string // of the policy, and errors of scripts
	requests []string
}

// newBrowser starts a browser. The test is skipped without one.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	program := cmp.Or(os.Getenv("PGAGUI_TEST_CHROMIUM"), "/usr/bin/chromium")
	if _, err := exec.LookPath(program); err != nil {
		testneeds.Skip(t, testneeds.Chromium, "%s is missing (Debian: chromium)", program)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.WSURLReadTimeout(wait.Patience))
	allocated, endAllocator := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	ctx, end := chromedp.NewContext(allocated)
	ctx, stop := context.WithTimeout(ctx, 2*wait.Patience)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits for the end of the browser
		stop()
		end()
		endAllocator()
	})
	b := &browser{t: t, ctx: ctx}
	note := func(format string, arguments ...any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.reports = append(b.reports, fmt.Sprintf(format, arguments...))
	}
	if err := chromedp.Listen(ctx, func(event any) {
		switch event := event.(type) {
		case *audits.EventIssueAdded:
			if event.Issue.Code == audits.InspectorIssueCodeContentSecurityPolicyIssue {
				text, _ := json.Marshal(event.Issue.Details)
				note("policy: %s", text)
			}
		case *log.EventEntryAdded:
			if event.Entry.Level == log.EntryLevelError {
				note("log: %s %s", event.Entry.Text, event.Entry.URL)
			}
		case *cdppage.EventJavascriptDialogOpening:
			note("dialog: %s", event.Message)
		case *runtime.EventExceptionThrown:
			note("script: %s", event.ExceptionDetails.Text)
		case *runtime.EventConsoleAPICalled:
			note("console: %v", event.Type)
		case *network.EventRequestWillBeSent:
			b.mu.Lock()
			defer b.mu.Unlock()
			b.requests = append(b.requests, event.Request.URL)
		}
	}); err != nil {
		t.Fatal(err)
	}
	b.run(command(audits.Enable, cdp.Empty{}), command(log.Enable, cdp.Empty{}), command(network.Enable, network.EnableParams{}), command(runtime.Enable, cdp.Empty{}))
	return b
}

// command is a command of the protocol whose result does not matter.
func command[P, R any](of cdp.Command[P, R], parameters P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, of, parameters)
		return err
	})
}

func (b *browser) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	must.Do(b.t, chromedp.Do(b.ctx, actions...))
}

func (b *browser) open(address string) {
	b.t.Helper()
	b.run(chromedp.Navigate(address))
}

// eval returns the value of an expression.
func eval[T any](b *browser, expression string) (value T) {
	b.t.Helper()
	value = must.Have(chromedp.Run(b.ctx, chromedp.Evaluate[T](expression)))(b.t)
	return value
}

// waitFor waits until an expression is true.
func (b *browser) waitFor(expression string) {
	b.t.Helper()
	wait.For(b.t, expression, func() bool { return eval[bool](b, "!!("+expression+")") })
}

// click clicks the middle of what a selector finds, where the mouse finds what a reader sees there. chromedp.Click notes a node, which is
// unknown once the page has changed.
func (b *browser) click(selector string) {
	b.t.Helper()
	b.waitFor(fmt.Sprintf(`document.querySelector(%q)`, selector))
	place := eval[struct{ X, Y float64 }](b, fmt.Sprintf(`{
		const found = document.querySelector(%q)
		found.scrollIntoView({ block: "center" })
		const { x, y, width, height } = found.getBoundingClientRect();
		({ x: x + width / 2, y: y + height / 2 })
	}`, selector))
	b.run(chromedp.MouseClickXY(place.X, place.Y))
}

// checkQuiet checks that nothing was reported, and that nothing was loaded from elsewhere.
func (b *browser) checkQuiet(site string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, report := range b.reports {
		b.t.Error(report)
	}
	for _, address := range b.requests {
		if !strings.HasPrefix(address, site) && !strings.HasPrefix(address, "data:") && address != "about:blank" {
			b.t.Errorf("it loaded %.200s", address)
		}
	}
	if len(b.requests) == 0 {
		b.t.Error("it noted no request")
	}
}

// A policy that is broken is noted: otherwise the tests below could not fail.
func TestTheBrowserReportsWhatThePolicyForbids(t *testing.T) {
	t.Parallel()
	s, _ := newOpenSite(t)
	b := newBrowser(t)
	b.open(s.url)
	eval[bool](b, `(() => { try { document.body.insertAdjacentHTML("beforeend", "<img src=https://elsewhere.example/x.png>"); } catch { return true } return false })()`)
	eval[bool](b, `(() => { const image = new Image(); image.src = "https://elsewhere.example/x.png"; document.body.append(image); return true })()`)
	wait.For(t, "the reports", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.reports) >= 2
	})
}

// No page of the recordings, of hostile content and of a large tree breaks the policy, loads anything from elsewhere, or is wider than
// the window.
func TestPagesInABrowser(t *testing.T) {
	t.Parallel()
	s, store := newOpenSite(t)
	thread := "hostile " + strings.Join(attacks[:3], " ")
	all := strings.Join(attacks, "\n\n")
	long := strings.Repeat("unbroken", 120)
	events := []rawMessage{started(thread, "r", all)}
	events = append(events, said("m", strings.ReplaceAll(all, "\x00", "")+"\n\n"+long+"\n\n|"+strings.Repeat(long+"|", 3)+"\n|"+strings.Repeat("---|", 3)+"\n\n```\n"+long+"\n```")...)
	events = append(events, event("TOOL_CALL_START", "toolCallId", "c", "toolCallName", long, "parentMessageId", "m"), event("TOOL_CALL_ARGS", "toolCallId", "c", "delta", `{"x":"`+long), event("TOOL_CALL_END", "toolCallId", "c"),
		event("STATE_SNAPSHOT", "snapshot", map[string]any{long: all}), event("ACTIVITY_SNAPSHOT", "messageId", "a", "activityType", long, "content", map[string]any{"steps": []any{long, all}}), event("RUN_ERROR", "message", long+all))
	appendEvents(t, store, pgagui.RunRef{ThreadID: thread, RunID: "r"}, events...)
	appendTree(t, store, "tree", 200)
	b := newBrowser(t)
	var pages []string
	for _, of := range []string{"trip-to-lisbon", "release-checkout-2.4", "recipe-card", "where-to-run-on-saturday", thread, "tree"} {
		for _, page := range []string{"thread", "time", "log", "times", "compare"} {
			pages = append(pages, page+"?id="+url.QueryEscape(of))
		}
	}
	pages = append(pages, "./", "waiting", "health", "login", "thread?id=trip-to-lisbon&run=run-6", "thread?id=release-checkout-2.4&run=run-1")
	for _, page := range pages {
		b.open(s.url + page)
		eval[int](b, `document.querySelectorAll("details").forEach((one) => (one.open = true)), 0`)
		for _, size := range [][2]int64{{390, 800}, {900, 800}, {1440, 900}} {
			b.run(chromedp.EmulateViewport(size[0], size[1]))
			if width := eval[float64](b, "document.documentElement.scrollWidth"); width > float64(size[0]) {
				widest := eval[string](b, `[...document.querySelectorAll("main *")].filter((one) => one.getBoundingClientRect().right > innerWidth && !one.closest("pre, .tree, .tabs, .markdown table")).map((one) => one.tagName + "." + one.className.toString()).slice(0, 5).join(" ")`)
				t.Errorf("%.80s is %v wide in a window of %d: %s", page, width, size[0], widest)
			}
		}
	}
	b.checkQuiet(s.url)
}

// appendTree appends so many runs, of which each seventh begins a branch at an earlier one.
func appendTree(t testing.TB, store *pgagui.Store, thread string, runs int) {
	t.Helper()
	for i := range runs {
		run := "run-" + strconv.Itoa(i)
		begin := started(thread, run, "Question "+strconv.Itoa(i))
		if i > 0 {
			parent := i - 1
			if i%7 == 0 {
				parent = i * 3 / 7
			}
			begin = json.RawMessage(strings.Replace(string(begin), `"runId"`, `"parentRunId":"run-`+strconv.Itoa(parent)+`","runId"`, 1))
		}
		end := finished(thread, run)
		if i%31 == 30 {
			end = event("RUN_ERROR", "message", "it failed")
		}
		appendEvents(t, store, pgagui.RunRef{ThreadID: thread, RunID: run}, append(append([]rawMessage{begin}, said("m-"+run, "Answer "+strconv.Itoa(i))...), end)...)
	}
}

// The list goes on by itself.
func TestTheListGoesOn(t *testing.T) {
	t.Parallel()
	s, store := newOpenSite(t)
	for i := range 120 {
		thread := "many-" + strconv.Itoa(i)
		appendEvents(t, store, pgagui.RunRef{ThreadID: thread, RunID: "r"}, started(thread, "r", "Question "+strconv.Itoa(i)), finished(thread, "r"))
	}
	b := newBrowser(t)
	b.open(s.url)
	wait.For(t, "all threads", func() bool {
		eval[int](b, "scrollTo(0, document.documentElement.scrollHeight), 0")
		return eval[int](b, `document.querySelectorAll(".thread").length`) == 124
	})
	if eval[bool](b, `!!document.querySelector("a[rel=next]")`) {
		t.Error("there is still a link to more")
	}
	b.checkQuiet(s.url)
}

// The slider shows what restore gives, at every event of a run; keys step.
func TestTheSlider(t *testing.T) {
	t.Parallel()
	s, store := newOpenSite(t)
	b := newBrowser(t)
	const thread, run = "trip-to-lisbon", "run-1"
	status := must.Have(store.Status(t.Context(), pgagui.RunRef{ThreadID: thread, RunID: run}))(t)
	b.open(s.url + "time?id=" + thread + "&run=" + run + "&seq=" + strconv.FormatInt(status.FirstSeq, 10))
	check := func(seq int64) {
		t.Helper()
		b.waitFor(fmt.Sprintf(`document.querySelector("#moment h2")?.nextElementSibling && [...document.querySelectorAll("#moment h2")].some((one) => one.textContent.startsWith("Event %d "))`, seq))
		restored := must.Have(store.Restore(t.Context(), thread, pgagui.At{RunID: run, Seq: seq}))(t)
		shown := eval[string](b, `document.querySelector(".state-text").textContent`)
		if !sameJSON(t, shown, string(restored.State)) {
			t.Errorf("event %d: the state is %s, want %s", seq, shown, restored.State)
		}
		for _, message := range restored.Messages {
			var text struct{ Content string }
			if json.Unmarshal(message, &text); text.Content != "" {
				words := strings.Fields(strings.NewReplacer("*", "", "{", " ", "\"", " ", ":", " ", ",", " ", "[", " ").Replace(text.Content))[0]
				if !eval[bool](b, "document.getElementById('moment').textContent.includes("+strconv.Quote(words)+")") {
					t.Errorf("event %d: it lacks %q", seq, words)
				}
			}
		}
	}
	check(status.FirstSeq)
	for seq := status.FirstSeq + 1; seq <= status.LastSeq; seq++ {
		b.run(chromedp.KeyEvent(kb.ArrowRight))
		check(seq)
	}
	b.run(chromedp.KeyEvent(kb.ArrowLeft))
	check(status.LastSeq - 1)
	middle := (status.FirstSeq + status.LastSeq) / 2
	eval[int](b, fmt.Sprintf(`(() => { const range = document.querySelector("input[type=range]"); range.value = %d; range.dispatchEvent(new Event("input")); return 0 })()`, middle-status.FirstSeq+1))
	check(middle)
	if address := eval[string](b, "location.search"); !strings.Contains(address, "seq="+strconv.FormatInt(middle, 10)) {
		t.Errorf("the address is %s", address)
	}
	b.checkQuiet(s.url)
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal([]byte(a), &x); err != nil {
		t.Errorf("%s: %v", a, err)
		return false
	}
	must.Do(t, json.Unmarshal([]byte(b), &y))
	return string(must.OrPanic(json.Marshal(x))) == string(must.OrPanic(json.Marshal(y)))
}

// A thread that runs streams in: what one reads stays as it is.
func TestLive(t *testing.T) {
	t.Parallel()
	s, store := newOpenSite(t)
	run := pgagui.RunRef{ThreadID: "live", RunID: "r1"}
	first := append([]rawMessage{started("live", "r1", "Go on"), event("TOOL_CALL_START", "toolCallId", "c", "toolCallName", "look", "parentMessageId", "m0"), event("TOOL_CALL_ARGS", "toolCallId", "c", "delta", "{}"),
		event("TOOL_CALL_END", "toolCallId", "c"), event("TOOL_CALL_RESULT", "messageId", "t", "toolCallId", "c", "content", "found", "role", "tool")}, said("m1", "First answer")...)
	appendEvents(t, store, run, first...)
	b := newBrowser(t)
	b.open(s.url + "thread?id=live")
	b.waitFor(`document.querySelector("live-thread").source?.readyState === 1`)
	eval[int](b, `document.querySelector("details.card").open = true, window.kept = document.querySelector(".part.user"), 0`)
	appendEvents(t, store, run, event("TEXT_MESSAGE_START", "messageId", "m2", "role", "assistant"), event("TEXT_MESSAGE_CONTENT", "messageId", "m2", "delta", "Second "))
	b.waitFor(`document.querySelector("live-thread").textContent.includes("Second")`)
	appendEvents(t, store, run, event("TEXT_MESSAGE_CONTENT", "messageId", "m2", "delta", "answer"), event("TEXT_MESSAGE_END", "messageId", "m2"))
	b.waitFor(`document.querySelector("live-thread").textContent.includes("Second answer")`)
	if !eval[bool](b, `document.querySelector("details.card").open && window.kept.isConnected && document.querySelector(".part.user") === window.kept`) {
		t.Error("what was open closed, or what did not change was replaced")
	}
	if !eval[bool](b, `!!document.querySelector("form[action=stop]")`) {
		t.Error("the run cannot be stopped")
	}
	appendEvents(t, store, run, finished("live", "r1"))
	b.waitFor(`document.querySelector(".thread-head .status").textContent === "finished" && !document.querySelector("form[action=stop]")`)
	// The next run of the thread comes, too.
	appendEvents(t, store, pgagui.RunRef{ThreadID: "live", RunID: "r2"}, append([]rawMessage{started("live", "r2", "And now?")}, said("m3", "Third answer")...)...)
	b.waitFor(`document.querySelector("live-thread").textContent.includes("Third answer") && document.querySelectorAll(".tree li").length === 2`)
	b.checkQuiet(s.url)
}

var shots = os.Getenv("PGAGUI_TEST_SCREENSHOTS")

// Pictures of the pages at three widths, light and dark, for people to look at: PGAGUI_TEST_SCREENSHOTS names the folder for them.
func TestScreenshots(t *testing.T) {
	if shots == "" {
		t.Skip("PGAGUI_TEST_SCREENSHOTS names no folder")
	}
	s, store := newOpenSite(t)
	appendTree(t, store, "tree", 200)
	appendWaiting(t, store)
	b := newBrowser(t)
	for name, page := range map[string]string{
		"threads": "./", "waits": "thread?id=waits", "thread": "thread?id=trip-to-lisbon&run=run-6", "tree": "thread?id=tree", "time": "time?id=trip-to-lisbon&run=run-4&seq=118", "log": "log?id=trip-to-lisbon&run=run-1",
		"times": "times?id=release-checkout-2.4&run=run-1", "compare": "compare?id=trip-to-lisbon&from=run-4&to=run-7", "waiting": "waiting", "health": "health", "login": "login",
	} {
		for _, width := range []int64{390, 900, 1440} {
			for _, scheme := range []string{"light", "dark"} {
				b.run(chromedp.EmulateViewport(width, 1000), command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
					Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
				}), chromedp.Navigate(s.url+page))
				picture := must.Have(chromedp.Run(b.ctx, chromedp.CaptureScreenshot()))(t)
				testfile.Write(t, filepath.Join(shots, fmt.Sprintf("%s-%d-%s.png", name, width, scheme)), picture)
			}
		}
	}
}
