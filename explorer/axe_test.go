package explorer_test

import (
	"cmp"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testneeds"
)

// The pages have no violation that axe-core finds, in light and dark. The package comes from npm: npm ci --prefix js.
func TestAccessibility(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile(cmp.Or(os.Getenv("PGAGUI_TEST_AXE"), "../js/node_modules/axe-core/axe.min.js"))
	if err != nil {
		testneeds.Skip(t, testneeds.Axe, "axe-core is not installed: %v", err)
	}
	s, store := newOpenSite(t)
	appendTree(t, store, "tree", 60)
	appendWaiting(t, store)
	b := newBrowser(t)
	for _, page := range []string{
		"./", "waiting", "health", "login", "nothing", "thread?id=trip-to-lisbon", "thread?id=trip-to-lisbon&run=run-6", "thread?id=tree", "thread?id=waits", "thread?id=recipe-card",
		"time?id=trip-to-lisbon&run=run-4", "log?id=trip-to-lisbon", "times?id=release-checkout-2.4&run=run-1", "compare?id=trip-to-lisbon&from=run-4", "continue?id=trip-to-lisbon&run=run-5&message=user-of-run-5",
	} {
		b.run(chromedp.EmulateViewport(1200, 900), chromedp.Navigate(s.url+page))
		eval[bool](b, string(script)+`; document.querySelectorAll("details").forEach((one) => (one.open = true)); true`)
		for _, scheme := range []string{"light", "dark"} {
			b.run(command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
			}))
			eval[bool](b, `window.found = undefined; axe.run().then((result) => (window.found = result.violations)); true`)
			b.waitFor("window.found")
			var violations []struct {
				ID, Help string
				Nodes    []struct{ HTML, FailureSummary string }
			}
			must.Do(t, json.Unmarshal([]byte(eval[string](b, "JSON.stringify(window.found)")), &violations))
			for _, violation := range violations {
				t.Errorf("%s, %s: %s: %s, at %d places:\n%.300s\n%s", page, scheme, violation.ID, violation.Help, len(violation.Nodes), violation.Nodes[0].HTML, strings.ReplaceAll(violation.Nodes[0].FailureSummary, "\n", " "))
			}
		}
	}
}
