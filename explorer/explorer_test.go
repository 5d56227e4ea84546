package explorer_test

import (
	"math"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/explorer"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testfile"
	"github.com/pgagui/pgagui/jobs"
	"github.com/pgagui/pgagui/server/access"
)

// policy is what the plan says.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Every page has the policy, links that lead somewhere, and landmarks.
func TestPages(t *testing.T) {
	t.Parallel()
	s, _ := newOpenSite(t)
	seen := map[string]bool{}
	pages := []string{"./"}
	for len(pages) > 0 && len(seen) < 400 {
		page := pages[0]
		pages = pages[1:]
		if seen[page] {
			continue
		}
		seen[page] = true
		got := s.get(nil, page)
		got.want(t, http.StatusOK)
		if got.Header.Get("Content-Security-Policy") != policy {
			t.Errorf("%s: the policy is %q", page, got.Header.Get("Content-Security-Policy"))
		}
		if !strings.HasPrefix(got.Header.Get("Content-Type"), "text/html") {
			continue
		}
		checkMarkup(t, page, got.text)
		for _, link := range linksOf(t, got.text) {
			parsed, err := url.Parse(link)
			if err != nil || parsed.IsAbs() || strings.HasPrefix(link, "/") {
				t.Errorf("%s: the link %q is not relative", page, link)
				continue
			}
			if parsed.Fragment = ""; link[0] != '#' {
				pages = append(pages, parsed.String())
			}
		}
	}
	for _, page := range []string{"log?", "times?", "compare?", "time?", "thread?", "waiting", "health", "ndjson?"} {
		found := false
		for name := range seen {
			found = found || strings.HasPrefix(name, page)
		}
		if !found {
			t.Errorf("no page leads to %s", page)
		}
	}
	if s.log.Len() > 0 {
		t.Errorf("it logged %s", s.log)
	}
}

// checkMarkup checks that a page has landmarks, that ids are unique, and that nothing in it runs but the script of the explorer.
func checkMarkup(t *testing.T, page, text string) {
	t.Helper()
	root := must.Have(html.Parse(strings.NewReader(text)))(t)
	count, ids := map[string]int{}, map[string]bool{}
	for node := range root.Descendants() {
		if node.Type != html.ElementNode {
			continue
		}
		count[node.Data]++
		for _, attribute := range node.Attr {
			name, value := strings.ToLower(attribute.Key), attribute.Val
			switch {
			case strings.HasPrefix(name, "on"), name == "style", name == "srcdoc":
				t.Errorf("%s: %s has the attribute %s=%.80q", page, node.Data, name, value)
			case name == "src" && !strings.HasPrefix(value, "static/") && !strings.HasPrefix(value, "attachment?"):
				t.Errorf("%s: %s loads %.80q", page, node.Data, value)
			case (name == "href" || name == "action" || name == "xlink:href") && !isHarmless(value):
				t.Errorf("%s: %s leads to %.80q", page, node.Data, value)
			case name == "id" && ids[value]:
				t.Errorf("%s: two elements have the id %q", page, value)
			case name == "id":
				ids[value] = true
			}
		}
		switch node.Data {
		case "iframe", "object", "embed", "base", "style", "meta", "link", "script":
			if source := attributeOf(node, "src") + attributeOf(node, "href"); node.Data == "script" && !strings.HasPrefix(source, "static/") || node.Data == "iframe" || node.Data == "object" || node.Data == "embed" || node.Data == "base" || node.Data == "style" {
				t.Errorf("%s: it has the element %s", page, node.Data)
			}
		}
	}
	if count["script"] != 1 || count["main"] != 1 || count["h1"] != 1 || count["header"] == 0 || count["title"] < 1 {
		t.Errorf("%s: its elements are %v", page, count)
	}
}

// isHarmless reports whether a link neither runs a script nor leaves the explorer, but for the links of a message.
func isHarmless(link string) bool {
	parsed, err := url.Parse(link)
	return err == nil && (parsed.Scheme == "" && !strings.HasPrefix(link, "/") || parsed.Scheme == "http" || parsed.Scheme == "https" || parsed.Scheme == "mailto")
}

func attributeOf(node *html.Node, name string) string {
	for _, attribute := range node.Attr {
		if attribute.Key == name {
			return attribute.Val
		}
	}
	return ""
}

// linksOf returns the links of a page that stay in the explorer.
func linksOf(t *testing.T, text string) (links []string) {
	t.Helper()
	root := must.Have(html.Parse(strings.NewReader(text)))(t)
	for node := range root.Descendants() {
		if node.Data == "a" || node.Data == "link" {
			if link := attributeOf(node, "href"); attributeOf(node, "target") == "" {
				links = append(links, link)
			}
		}
	}
	return links
}

// A page that does not exist, a thread, a run and an event that do not, and parameters that are none, are errors as pages.
func TestErrorsArePages(t *testing.T) {
	t.Parallel()
	s, _ := newOpenSite(t)
	for page, want := range map[string]struct {
		status int
		text   string
	}{
		"nothing":                            {404, "there is no such page"},
		"thread?id=nobody":                   {404, "nobody"},
		"thread":                             {400, "lacks the parameter id"},
		"thread?id=trip-to-lisbon&run=run-9": {404, "has no run"},
		"thread?id=trip-to-lisbon&run=run-1&seq=100": {404, "event 100 is not of run"},
		"thread?id=trip-to-lisbon&run=run-1&seq=x":   {400, "expected the number of an event"},
		"log?id=trip-to-lisbon&after=-1":             {400, "expected the number of an event"},
		"?since=yesterday":                           {400, "expected a time such as 24h"},
		"?cursor=nonsense":                           {422, ""},
		"attachment?id=trip-to-lisbon&n=1":           {404, "no attachment"},
	} {
		got := s.get(nil, page)
		got.want(t, want.status, want.text, "<h1>", `<a href="./">All threads</a>`)
		if got.Header.Get("Content-Security-Policy") != policy {
			t.Errorf("%s: the policy is %q", page, got.Header.Get("Content-Security-Policy"))
		}
	}
	if got := s.do(nil, "DELETE", "./", nil, nil); got.StatusCode != http.StatusNotFound {
		t.Errorf("DELETE: %s", got.Status)
	}
}

// The address without a slash leads to the one with it, whatever the prefix is.
func TestThePrefixWithoutASlash(t *testing.T) {
	t.Parallel()
	s, _ := newOpenSite(t)
	s.url = strings.TrimSuffix(s.url, "/")
	got := s.get(nil, "")
	got.want(t, http.StatusOK, "<h1>Threads</h1>")
	if got.Request.URL.Path != prefix+"/" {
		t.Errorf("it leads to %s", got.Request.URL)
	}
}

func TestTheListOfThreads(t *testing.T) {
	t.Parallel()
	s, store := newOpenSite(t)
	for i := range 120 {
		thread := "many-" + strconv.Itoa(i)
		appendEvents(t, store, pgagui.RunRef{ThreadID: thread, RunID: "r"}, started(thread, "r", "Question "+strconv.Itoa(i)), finished(thread, "r"))
	}
	failed := pgagui.RunRef{ThreadID: "failed", RunID: "r"}
	appendEvents(t, store, failed, started("failed", "r", "What is wrong?"), event("RUN_ERROR", "code", "overloaded", "message", "no model answers"))

	first := s.get(nil, "./")
	first.want(t, http.StatusOK, "What is wrong?", "overloaded: no model answers", "Question 119")
	// All pages together have each thread once.
	seen, page := map[string]int{}, "./"
	row := regexp.MustCompile(`class="name" dir="auto"><a href="thread\?id=([^"]+)"`)
	next := regexp.MustCompile(`<a class="more" href="([^"]+)" rel="next">`)
	for pages := 0; page != "" && pages < 10; pages++ {
		got := s.get(nil, page)
		for _, match := range row.FindAllStringSubmatch(got.text, -1) {
			seen[match[1]]++
		}
		page = ""
		if match := next.FindStringSubmatch(got.text); match != nil {
			page = html.UnescapeString(match[1])
		}
	}
	if len(seen) != 125 {
		t.Errorf("the pages have %d threads, want 125", len(seen))
	}
	for id, times := range seen {
		if times != 1 {
			t.Errorf("%s is there %d times", id, times)
		}
	}
	for query, want := range map[string]string{
		"?q=QUESTION+77": "many-77", "?q=many-7": "many-7", "?status=failed": "failed", "?q=lisbon": "trip-to-lisbon", "?since=1h&q=many-7": "many-7",
	} {
		got := s.get(nil, query)
		if found := row.FindAllStringSubmatch(got.text, -1); len(found) != 1 || found[0][1] != want {
			t.Errorf("%s finds %v, want %s", query, found, want)
		}
	}
	s.get(nil, "?q=zzz").want(t, http.StatusOK, "No thread fits")
}

// Each text is readable on each ground that it stands on, in light and in dark.
func TestContrast(t *testing.T) {
	t.Parallel()
	text := testfile.Read(t, "static/tokens.css")
	tokens := map[string][2]string{}
	for _, match := range regexp.MustCompile(`--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)`).FindAllStringSubmatch(string(text), -1) {
		tokens[match[1]] = [2]string{match[2], match[3]}
	}
	if want := strings.Count(string(text), "light-dark("); len(tokens) != want || want < 15 {
		t.Fatalf("read %d of %d colors", len(tokens), want)
	}
	grounds := []string{"page", "panel", "sunken", "hover", "accent-soft"}
	pairs := map[string][]string{
		"text": append(grounds, "good-soft", "waiting-soft", "bad-soft"), "muted": append(grounds, "waiting-soft", "bad-soft"),
		"accent": grounds, "good": {"page", "panel", "sunken", "hover", "good-soft"},
		"waiting": {"page", "panel", "sunken", "hover", "waiting-soft", "accent-soft"}, "bad": {"page", "panel", "sunken", "hover", "bad-soft", "accent-soft"},
		"on-accent": {"accent"},
	}
	for name, grounds := range pairs {
		for _, ground := range grounds {
			for mode, word := range []string{"light", "dark"} {
				if ratio := contrast(t, tokens[name][mode], tokens[ground][mode]); ratio < 4.5 {
					t.Errorf("%s on %s, %s: %.2f", name, ground, word, ratio)
				}
			}
		}
	}
	// No colour has another source.
	styles := testfile.Read(t, "static/explorer.css")
	if found := regexp.MustCompile(`#[0-9a-fA-F]{3,8}\b[^{]*;|rgba?\(|hsl`).Find(styles); found != nil {
		t.Errorf("explorer.css has the color %s", found)
	}
}

// contrast is the ratio of WCAG 2.
func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	luminance := func(color string) (sum float64) {
		for i, weight := range []float64{.2126, .7152, .0722} {
			value := must.Have(strconv.ParseUint(color[1+2*i:3+2*i], 16, 8))(t)
			share := float64(value) / 255
			if share <= .04045 {
				share /= 12.92
			} else {
				share = math.Pow((share+.055)/1.055, 2.4)
			}
			sum += weight * share
		}
		return sum
	}
	x, y := luminance(a)+.05, luminance(b)+.05
	return max(x, y) / min(x, y)
}

// Where the search is on, the words that were said lead to their places; in the scope of the reader alone.
func TestSearch(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	store := pgagui.New(pool, nil)
	importRecordings(t, store)
	other := store.InScope("other")
	appendEvents(t, other, pgagui.RunRef{ThreadID: "elsewhere", RunID: "r"}, append(append([]rawMessage{started("elsewhere", "r", "Where is the monastery?")}, said("m", "In another scope.")...), finished("elsewhere", "r"))...)
	s := newSite(t, store, explorer.Options{Access: access.Anonymous("", access.Read)})
	if got := s.get(nil, "?q=monastery"); strings.Contains(got.text, "In messages") {
		t.Error("it finds messages although the search is off")
	}
	must.Do(t, store.EnableSearch(t.Context(), "english"))
	must.Have(jobs.Project(t.Context(), pool, jobs.ProjectOptions{}))(t)
	got := s.get(nil, "?q=monasteries")
	got.want(t, http.StatusOK, "In messages", "<mark>monastery</mark>")
	if strings.Contains(got.text, "elsewhere") {
		t.Error("it finds messages of another scope")
	}
	links := 0
	for _, link := range linksOf(t, got.text) {
		if strings.HasPrefix(link, "thread?") && strings.Contains(link, "seq=") {
			s.get(nil, link).want(t, http.StatusOK)
			links++
		}
	}
	if links == 0 {
		t.Error("nothing leads to a place")
	}
	if strings.Contains(got.text, "of the newest") {
		t.Error("it says that some were not ranked")
	}
	definition := testdb.Ask[string](t, pool, `select pg_get_functiondef(oid) from pg_proc where pronamespace = 'agui'::regnamespace and proname = 'search'`)
	testdb.Exec(t, pool, strings.Replace(definition, "most_ranked constant int := 10000", "most_ranked constant int := 1", 1))
	s.get(nil, "?q=monasteries").want(t, http.StatusOK, "In messages", "the best of the newest 10,000 that match")
	for _, odd := range []string{"%22", "or", "-", "x+or+-", strings.Repeat("a", 11_000), "%00", "%ff"} {
		if got := s.get(nil, "?q="+odd); got.StatusCode >= 500 {
			t.Errorf("%.20s: %s", odd, got.Status)
		}
	}
}
