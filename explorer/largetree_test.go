package explorer_test

import (
	"fmt"
	"html"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/explorer"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/server/access"
)

// appendLarge appends so many runs, as a chain, or with so many branches, each of which has a few runs.
func appendLarge(t testing.TB, store *pgagui.Store, thread string, runs, branches int) {
	t.Helper()
	every := runs // how many runs a branch and the piece of the trunk before it have
	if branches > 1 {
		every = runs / (branches - 1)
	}
	var calls []pgagui.AppendCall
	parent, trunk := "", ""
	for i := range runs {
		run := "run-" + strconv.Itoa(i)
		begins := i%every == every/2 && i/every < branches-1 // a branch
		if i > 0 && i%every == 0 && i/every <= branches-1 {
			parent = trunk // the trunk goes on
		}
		if begins {
			trunk = parent
		}
		end := finished(thread, run)
		if i%97 == 50 {
			end = event("RUN_ERROR", "message", "it failed")
		}
		events := append(append([]rawMessage{started(thread, run, "Question "+strconv.Itoa(i))}, said("m-"+run, "Answer "+strconv.Itoa(i))...), end)
		calls = append(calls, pgagui.AppendCall{Run: pgagui.RunRef{ThreadID: thread, RunID: run}, Events: events, ParentRunID: parent, NoParent: parent == ""})
		parent = run
	}
	appendCalls(t, store, calls)
}

func appendCalls(t testing.TB, store *pgagui.Store, calls []pgagui.AppendCall) {
	t.Helper()
	for part := range slices.Chunk(calls, 200) {
		results := must.Have(store.AppendMany(t.Context(), part, pgagui.AppendManyOptions{}))(t)
		for _, result := range results {
			if result.Err != nil {
				t.Fatal(result.Err)
			}
		}
	}
}

// A page shows a part of a tree that has very many rows: where the selected run is, and links lead to the others.
func TestTreesOfManyRowsInPages(t *testing.T) {
	t.Parallel()
	const runs = 2500
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	s := newSite(t, store, explorer.Options{Access: access.Anonymous("", access.Admin), Database: pool})
	var calls []pgagui.AppendCall
	for i := range runs {
		call := pgagui.AppendCall{
			Run:    pgagui.RunRef{ThreadID: "wide", RunID: "run-" + strconv.Itoa(i)},
			Events: []rawMessage{event("RUN_STARTED"), event("RUN_FINISHED")},
		}
		if i > 0 {
			call.ParentRunID = "run-0"
		}
		calls = append(calls, call)
	}
	appendCalls(t, store, calls)

	rows, toOthers := regexp.MustCompile(`<li id="tree-(\d+)"`), regexp.MustCompile(`<a class="more small" href="([^"]+)">([\d,]+ runs?) (above|below)</a>`)
	// read returns the numbers of the runs that a page shows, and the links to the others.
	read := func(page string) (numbers []string, links map[string]string, texts []string) {
		t.Helper()
		got := s.get(nil, page)
		got.want(t, 200)
		if len(got.text) > 600_000 {
			t.Errorf("%s has %d bytes", page, len(got.text))
		}
		for _, row := range rows.FindAllStringSubmatch(got.text, -1) {
			numbers = append(numbers, row[1])
		}
		links = map[string]string{}
		for _, more := range toOthers.FindAllStringSubmatch(got.text, -1) {
			links[more[3]] = html.UnescapeString(more[1])
			texts = append(texts, more[2]+" "+more[3])
		}
		return numbers, links, texts
	}

	var all []string
	page := "thread?id=wide"
	for _, want := range []string{"[1,500 runs below]", "[1,000 runs above 500 runs below]", "[2,000 runs above]"} {
		numbers, links, texts := read(page)
		if fmt.Sprint(texts) != want {
			t.Errorf("%s: links %v, want %v", page, texts, want)
		}
		all, page = append(all, numbers...), links["below"]
	}
	if len(all) != runs || all[0] != "2500" || all[runs-1] != "1" {
		t.Errorf("the pages show %d runs, from %s to %s", len(all), all[0], all[len(all)-1])
	}
	slices.Sort(all)
	if len(slices.Compact(all)) != runs {
		t.Error("the pages show runs twice")
	}

	numbers, links, _ := read("thread?id=wide&run=run-700") // its number is 701
	if !slices.Contains(numbers, "701") || len(numbers) != 1000 {
		t.Errorf("the page of a run in the middle shows the runs %s to %s", numbers[0], numbers[len(numbers)-1])
	}
	first := numbers[0]
	for links["above"] != "" {
		numbers, links, _ = read(links["above"])
	}
	if numbers[0] != "2500" || first == "2500" {
		t.Errorf("the links to what is above lead to run %s", numbers[0])
	}

	_, links, _ = read("thread?id=wide&run=run-700&seq=1401")
	if got := s.get(nil, links["below"]); !strings.Contains(got.text, "As it was at event 1401") {
		t.Errorf("%s shows the conversation at another event", links["below"])
	}
}

// A tree of 1,000 runs with 94 branches, and a chain of 1,000, stay readable: straight stretches are one
// row, the head and the selected run are marked and in view, and nothing is wider than the window.
func TestLargeTreesInABrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes some seconds")
	}
	t.Parallel()
	s, store := newOpenSite(t)
	appendLarge(t, store, "tree", 1000, 94)
	appendLarge(t, store, "chain", 1000, 1)
	b := newBrowser(t)
	for _, thread := range []struct {
		id             string
		branches, rows int // rows: at most
	}{{"tree", 94, 1000}, {"chain", 1, 60}} {
		known, err := store.Thread(t.Context(), thread.id)
		if err != nil || known.Runs != 1000 || known.Branches != thread.branches {
			t.Fatalf("%s has %d runs and %d branches (%v)", thread.id, known.Runs, known.Branches, err)
		}
		for _, size := range [][2]int64{{390, 800}, {900, 800}, {1440, 900}} {
			b.run(chromedp.EmulateViewport(size[0], size[1]))
			for _, page := range []string{"thread?id=", "thread?run=run-500&id=", "log?id=", "time?id=", "times?id=", "compare?id="} {
				b.open(s.url + page + thread.id)
				if width := eval[float64](b, "document.documentElement.scrollWidth"); width > float64(size[0]) {
					t.Errorf("%s%s is %v wide in a window of %d", page, thread.id, width, size[0])
				}
				if page[:6] != "thread" {
					continue
				}
				rows := eval[int](b, `document.querySelectorAll(".tree li").length`)
				folded := eval[int](b, `[...document.querySelectorAll(".tree .fold")].reduce((sum, one) => sum + parseInt(one.textContent.replace(",", "")), 0)`)
				if shown := rows - eval[int](b, `document.querySelectorAll(".tree .fold").length`); rows > thread.rows || shown+folded != 1000 {
					t.Errorf("%s%s: %d rows, which stand for %d runs", page, thread.id, rows, shown+folded)
				}
				if thread.id == "tree" && rows > 700 {
					t.Errorf("%s%s: %d rows", page, thread.id, rows)
				}
				selected := "run-999"
				if page != "thread?id=" {
					selected = "run-500"
				}
				marked := fmt.Sprintf(`(() => {
					const selected = document.querySelector(".tree .selected"), list = document.querySelector(".tree ol").getBoundingClientRect();
					const heads = [...document.querySelectorAll(".tree .tag")].map((one) => one.closest("li").textContent);
					const at = selected.getBoundingClientRect(), text = selected.querySelector("a");
					return selected.textContent.includes(%q) && heads.length === 1 && heads[0].includes("run-999") && at.top >= list.top - 1 && at.bottom <= list.bottom + 1
						&& text.clientWidth > 40;
				})()`, selected)
				if !eval[bool](b, marked) {
					t.Errorf("%s%s in a window of %d: the head or the selected run is not marked, or not in view", page, thread.id, size[0])
				}
				// The picture takes at most half of the row: the name of each run can be read.
				if narrow := eval[int](b, `[...document.querySelectorAll(".tree li")].filter((row) => row.querySelector("svg").clientWidth > row.clientWidth / 2 + 20).length`); narrow > 0 {
					t.Errorf("%s%s: the picture takes most of %d rows", page, thread.id, narrow)
				}
			}
		}
		// A stretch opens, and the others stay as they are.
		b.open(s.url + "thread?id=" + thread.id)
		before := eval[int](b, `document.querySelectorAll(".tree .fold").length`)
		length := eval[int](b, `parseInt(document.querySelector(".tree .fold").textContent.replace(",", ""))`)
		rows := eval[int](b, `document.querySelectorAll(".tree li").length`)
		eval[int](b, `document.querySelector(".tree .fold a").click(), 0`)
		b.waitFor(fmt.Sprintf(`location.search.includes("open=") && document.querySelectorAll(".tree .fold").length === %d && document.querySelectorAll(".tree li").length === %d`, before-1, rows+length-1))
	}
	b.checkQuiet(s.url)
}
