package explorer_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/explorer"
)

// A text whose markup would take work or space that grows with its square is shown as it is.
func TestCostlyTextsStayTexts(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]string{
		"long": strings.Repeat("word ", 30_000), "lines": strings.Repeat("word\n", 4000), "quotes": strings.Repeat(">", 100),
		"quotes with spaces": strings.Repeat("> ", 100), "lists in a line": strings.Repeat("- ", 100), "numbers in a line": strings.Repeat("1. ", 100),
		"nested lists": strings.Repeat(" ", 300) + "- item", "tabs": strings.Repeat("\t", 100) + "text", "brackets": strings.Repeat("[a](", 2000),
		"table":  strings.Repeat("|", 500) + "\n" + strings.Repeat("|-", 500) + "|\n" + strings.Repeat("|\n", 1000),
		"markup": strings.Repeat("www.a.b(", 12_000),
	} {
		if html := explorer.MarkdownHTML(source); html != "" {
			t.Errorf("%s: %d bytes become %d bytes of HTML", name, len(source), len(html))
		}
	}
	var report strings.Builder
	for i := range 200 {
		fmt.Fprintf(&report, "## Part %d\n\nSome *words*, and [a link](https://example.com/%d).\n\n> > quoted\n\n- one\n  - two\n    1. three\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n", i, i)
	}
	if html := explorer.MarkdownHTML(report.String()); strings.Count(string(html), "<a ") != 200 {
		t.Errorf("a report of %d bytes has %d links", report.Len(), strings.Count(string(html), "<a "))
	}
	if html := explorer.MarkdownHTML("[a](https://example.com/" + strings.Repeat("x", 3000) + ")"); strings.Contains(string(html), "<a ") {
		t.Error("a destination of 3,000 bytes is a link")
	}
}

// Links of a page repeat its parameters, so a long one is refused, and one that repeats itself is not.
func TestParametersDoNotMakeAPageLarge(t *testing.T) {
	t.Parallel()
	s, store := newOpenSite(t)
	appendLarge(t, store, "tree", 500, 100)
	plain := s.get(nil, "thread?id=tree")
	many := s.get(nil, "thread?id=tree&open="+strings.Repeat("7.", 3000)+"x.-1.999999")
	if many.StatusCode != http.StatusOK || len(many.text) > len(plain.text)+len(plain.text)/2 {
		t.Errorf("%s: the page has %d bytes, with a long parameter %d", many.Status, len(plain.text), len(many.text))
	}
	if long := s.get(nil, "thread?id=tree&open="+strings.Repeat("7", 60_000)); long.StatusCode != http.StatusRequestURITooLong {
		t.Errorf("60 KB of parameters: %s", long.Status)
	}
}
