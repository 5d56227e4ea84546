package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	neturl "net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testneeds"
)

// scraped are the metrics that a process serves: types and text.
type scraped struct {
	types map[string]string
	text  string
}

var (
	metricType = regexp.MustCompile(`(?m)^# TYPE (\w+) (\w+)$`)
	servingAt  = regexp.MustCompile(`"msg":"serving metrics","url":"([^"]+)"`)
)

func (p *process) scrape(t *testing.T) scraped {
	t.Helper()
	answer, err := http.Get(servingAt.FindStringSubmatch(p.log)[1])
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%v %s %s", err, answer.Status, text)
	}
	s := scraped{map[string]string{}, string(text)}
	for _, match := range metricType.FindAllStringSubmatch(s.text, -1) {
		s.types[match[1]] = match[2]
	}
	return s
}

// has reports whether a line begins with a text: a metric with its labels, and its value.
func (s scraped) has(line string) bool { return strings.Contains("\n"+s.text, "\n"+line) }

// serveAll starts a server with a worker and everything else that has metrics.
func (c commandLine) serveAll() (s *served, token string) {
	c.t.Helper()
	folder := c.t.TempDir()
	file := filepath.Join(folder, "tokens.yaml")
	token = c.token(file, "web", "acme", "read,write")
	writeCertificate(c.t, filepath.Join(folder, "crt"), filepath.Join(folder, "key"), 1)
	config := writeFile(c.t, "serve.yaml", "worker:", "  compact: '@every 1s'", "  verify: '@every 1s'", "  databaseUrlFile: "+writeFile(c.t, "worker", c.databaseURL+"&application_name=upkeep"))
	return c.serve("--config", config, "--token-file", file, "--metrics-listen", "127.0.0.1:0", "--agent", "assistant="+newSample(c.t),
		"--live-database-url", c.databaseURL, "--read-database-url", c.databaseURL, "--tls-certificate", filepath.Join(folder, "crt"), "--tls-key", filepath.Join(folder, "key")), token
}

// A server with everything serves the metrics that docs/operations.md lists, and those that the
// dashboards and alerts use.
func TestMetricsAreThoseOfTheDocsDashboardsAndAlerts(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	s, token := commands.serveAll()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	if answer, text := s.request(client, token, "POST", "/agent/assistant/run", runInput("t", "r", "Hello")); answer.StatusCode != http.StatusOK {
		t.Fatalf("%s %s", answer.Status, text)
	}
	if answer, _ := s.request(client, "", "GET", "/threads/t/events", ""); answer.StatusCode != http.StatusUnauthorized {
		t.Fatal(answer.Status)
	}
	s.waitForLine(t, `"msg":"job done","job":"compact"`, `"runs":1`)
	s.waitForLine(t, `"msg":"job done","job":"verify"`, `"problems":0`)
	got := s.scrape(t)
	for _, line := range []string{
		`pgagui_store_up{view="lag"} 1`, `pgagui_store_up{view="stats"} 1`, `pgagui_store_runs_stale 0`, `pgagui_store_runs_in_progress 0`,
		`pgagui_job_runs_total{name="reap",outcome="done"} 0`, `pgagui_job_runs_total{name="erase"`, `pgagui_pool_max_connections{pool="live"} 10`,
		`pgagui_pool_max_connections{pool="requests"} 10`, `pgagui_pool_max_connections{pool="reads"} 10`, `pgagui_server_replica_usable 1`,
		`pgagui_pool_max_connections{pool="worker"} `, `pgagui_server_runs_total{agent="assistant",outcome="finished"} 1`,
	} {
		if want := !strings.Contains(line, "erase"); got.has(line) != want {
			t.Errorf("%s: %t", line, !want)
		}
	}

	documented := map[string]string{}
	row := regexp.MustCompile("(?m)^\\| `(pgagui_\\w+)`(?: by [^|]*)? \\| (\\w+) \\| ")
	for _, match := range row.FindAllStringSubmatch(readFile(t, "../../docs/operations.md"), -1) {
		documented[match[1]] = match[2]
	}
	for name, kind := range got.types {
		if strings.HasPrefix(name, "pgagui_") && documented[name] != kind {
			t.Errorf("docs/operations.md: the %s %s is %q", kind, name, documented[name])
		}
	}
	for name := range documented {
		if got.types[name] == "" {
			t.Errorf("docs/operations.md lists %s, which the server does not have", name)
		}
	}

	used := map[string]bool{}
	name := regexp.MustCompile(`\b(?:pgagui|process|go)_[a-z_]+\b`)
	check := func(where, expression string) {
		names := name.FindAllString(expression, -1)
		if len(names) == 0 && !strings.HasPrefix(expression, "up{") {
			t.Errorf("%s: no metric in %s", where, expression)
		}
		for _, name := range names {
			for _, suffix := range []string{"_bucket", "_count", "_sum"} {
				if base := strings.TrimSuffix(name, suffix); got.types[base] == "histogram" {
					name = base
				}
			}
			used[name] = true
			if got.types[name] == "" {
				t.Errorf("%s: the server has no metric %s", where, name)
			}
		}
	}
	for _, file := range []string{"server.json", "store.json"} {
		checkDashboard(t, file, check)
	}
	rules := readDeploy(t, "prometheus/alerts.yaml")
	expressions := regexp.MustCompile(`(?m)^        expr: (?:\|\n((?:          .*\n)+)|(.*))`).FindAllStringSubmatch(rules, -1)
	for _, match := range expressions {
		check("alerts.yaml", strings.TrimSpace(match[1]+match[2]))
	}
	if want := strings.Count(rules, "- alert:"); len(expressions) != want {
		t.Errorf("%d expressions of %d alerts", len(expressions), want)
	}
	// Information that belongs to no picture and no alert.
	for name := range documented {
		if !used[name] && !slices.Contains([]string{
			"pgagui_build_info", "pgagui_pool_acquires_total", "pgagui_pool_waits_total", "pgagui_pool_cancelled_acquires_total", "pgagui_job_last_failure_timestamp_seconds",
		}, name) {
			t.Errorf("no dashboard and no alert uses %s", name)
		}
	}
	s.terminate(t)
	if code := s.end(t); code != exitOK {
		t.Errorf("exit code %d:\n%s", code, s.log)
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// checkDashboard checks a dashboard, and its expressions with check.
func checkDashboard(t *testing.T, file string, check func(where, expression string)) {
	t.Helper()
	var board struct {
		UID        string
		Title      string
		Templating struct {
			List []struct{ Name, Type string }
		}
		Panels []struct {
			ID          int
			Type, Title string
			Description string
			GridPos     struct{ X, Y, W, H int }
			Datasource  struct{ UID string }
			FieldConfig struct{ Defaults struct{ Unit string } }
			Targets     []struct {
				RefID, Expr string
				Datasource  struct{ UID string }
			}
		}
	}
	if err := json.Unmarshal([]byte(readDeploy(t, "grafana/"+file)), &board); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if board.UID == "" || board.Title == "" || len(board.Panels) < 10 || len(board.Templating.List) == 0 || board.Templating.List[0].Type != "datasource" {
		t.Errorf("%s: %q, %d panels, variables %+v", file, board.Title, len(board.Panels), board.Templating.List)
	}
	ids, cells := map[int]bool{}, map[[2]int]string{}
	for _, panel := range board.Panels {
		where := file + ": " + panel.Title
		if ids[panel.ID] || panel.ID == 0 || panel.Title == "" {
			t.Errorf("%s: the id %d", where, panel.ID)
		}
		ids[panel.ID] = true
		at := panel.GridPos
		if at.X+at.W > 24 || at.W == 0 || at.H == 0 {
			t.Errorf("%s: it is at %+v", where, at)
		}
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				if other := cells[[2]int{x, y}]; other != "" {
					t.Fatalf("%s: it covers %s", where, other)
				}
				cells[[2]int{x, y}] = panel.Title
			}
		}
		if panel.Type == "row" {
			continue
		}
		if panel.FieldConfig.Defaults.Unit == "" || panel.Description == "" || panel.Datasource.UID != "${datasource}" || len(panel.Targets) == 0 {
			t.Errorf("%s: %+v", where, panel)
		}
		for _, target := range panel.Targets {
			if target.Datasource.UID != "${datasource}" || target.RefID == "" || !strings.Contains(target.Expr, `job=~"$job",instance=~"$instance"`) {
				t.Errorf("%s: %+v", where, target)
			}
			check(where, strings.ReplaceAll(target.Expr, `job=~"$job",instance=~"$instance"`, ""))
		}
	}
}

// Each alert has a case in which it fires, and one in which it does not, and these are right.
func TestAlertRules(t *testing.T) {
	t.Parallel()
	rules, tests := readDeploy(t, "prometheus/alerts.yaml"), readDeploy(t, "prometheus/alerts_test.yaml")
	docs := readFile(t, "../../docs/operations.md")
	for _, match := range regexp.MustCompile(`- alert: (\w+)\n(?:.*\n)*?        labels: \{severity: (\w+)\}`).FindAllStringSubmatch(rules, -1) {
		if row := "| `" + match[1] + "` | " + match[2] + " |"; !strings.Contains(docs, row) {
			t.Errorf("docs/operations.md has no row %s", row)
		}
		for _, kind := range []string{" fires\n", " quiet\n"} {
			if !strings.Contains(tests, "- name: "+match[1]+kind) {
				t.Errorf("alerts_test.yaml has no case %s%s", match[1], kind)
			}
		}
	}
	if _, err := exec.LookPath("promtool"); errors.Is(err, exec.ErrNotFound) {
		testneeds.Skip(t, testneeds.Promtool, "promtool is not installed (Debian: prometheus)")
	}
	for _, arguments := range [][]string{{"check", "rules", "alerts.yaml"}, {"test", "rules", "alerts_test.yaml"}, {"check", "config", "scrape.yaml"}} {
		command := exec.CommandContext(t.Context(), "promtool", arguments...)
		command.Dir = "../../deploy/prometheus"
		if output, err := command.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(arguments, " "), err, output)
		}
	}
	// The expressions of the dashboards are valid too.
	var expressions []string
	for _, file := range []string{"server.json", "store.json"} {
		checkDashboard(t, file, func(_, expression string) { expressions = append(expressions, expression) })
	}
	text := "groups:\n  - name: dashboards\n    rules:\n"
	for i, expression := range expressions {
		text += "      - {record: 'x" + strings.Repeat("x", i) + "', expr: '" + strings.ReplaceAll(expression, "{,", "{") + "'}\n"
	}
	if output, err := exec.CommandContext(t.Context(), "promtool", "check", "rules", writeFile(t, "dashboards.yaml", text)).CombinedOutput(); err != nil {
		t.Errorf("the dashboards: %v\n%s", err, output)
	}
}

// The worker serves the same metrics of jobs and store.
func TestWorkerServesMetrics(t *testing.T) {
	t.Parallel()
	commands := newCommandLine(t)
	importThreads(t, commands, 2)
	w := commands.start("worker", "--json", "--compact", "@every 1s", "--metrics-listen", "127.0.0.1:0")
	w.waitForLine(t, `"msg":"job done","job":"compact"`)
	got := w.scrape(t)
	for _, line := range []string{
		`pgagui_job_runs_total{name="compact",outcome="done"} `, `pgagui_job_runs_total{name="compact",outcome="failed"} 0`, "pgagui_store_runs_to_compact 0",
		`pgagui_store_runs{outcome="finished"} 2`, `pgagui_job_last_success_timestamp_seconds{name="compact"} 1`, `pgagui_pool_max_connections{pool="worker"} `,
	} {
		if !got.has(line) {
			t.Errorf("no %s", line)
		}
	}
	w.terminate(t)
	if code := w.end(t); code != exitOK {
		t.Errorf("exit code %d:\n%s", code, w.log)
	}
	commands.mustFail(exitUsage, "worker", "--metrics-listen", "192.0.2.1:1")
}

// upOf scrapes pgagui_store_up, by view, and counts the other metrics of the store.
func upOf(t *testing.T, m *storeMetrics) (up map[string]float64, others int) {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	up = map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() != "pgagui_store_up" {
				others++
				continue
			}
			up[metric.GetLabel()[0].GetValue()] = metric.GetGauge().GetValue()
		}
	}
	return up, others
}

func newTestStoreMetrics(t *testing.T, url string) *storeMetrics {
	t.Helper()
	m, err := newStoreMetrics(t.Context(), url, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.close)
	return m
}

// A scrape does not wait for the database, and says what it could not read.
func TestScrapesDoNotWaitForTheStore(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	m := newTestStoreMetrics(t, url)
	tx, err := testdb.Connect(t, url).Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), `lock table agui.run`)
	}
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if up, others := upOf(t, m); up["lag"] != 0 || up["stats"] != 0 || len(up) != 2 || others != 0 {
		t.Errorf("%v and %d others", up, others)
	}
	if took := time.Since(begin); took < scrapePatience || took > 3*scrapePatience {
		t.Errorf("a scrape took %s", took)
	}
	if err := tx.Rollback(context.Background()); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool {
		up, others := upOf(t, m)
		return up["lag"] == 1 && up["stats"] == 1 && others > 10
	})
}

// With row-level security, the numbers of one scope would mislead.
func TestMetricsOfTheStoreAreThoseOfAllScopes(t *testing.T) {
	t.Parallel()
	url := testdb.New(t)
	owner := testdb.Connect(t, url)
	role := "metrics_" + strings.ToLower(rand.Text())
	t.Cleanup(func() {
		if _, err := owner.Exec(context.Background(), `drop owned by `+role+`; drop role `+role); err != nil {
			t.Error(err)
		}
	})
	for _, statement := range []string{
		`create role ` + role + ` login password 'secret' in role agui_writer`, `select agui.map_pool('` + role + `')`, `call agui.enable_row_security()`,
	} {
		if _, err := owner.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	as, err := neturl.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	as.User = neturl.UserPassword(role, "secret")
	if up, others := upOf(t, newTestStoreMetrics(t, as.String())); up["lag"] != 0 || up["stats"] != 0 || others != 0 {
		t.Errorf("a role of one scope: %v and %d others", up, others)
	}
	if _, err := owner.Exec(t.Context(), `grant pg_monitor to `+role); err != nil {
		t.Fatal(err)
	}
	m := newTestStoreMetrics(t, as.String())
	waitFor(t, func() bool { up, _ := upOf(t, m); return up["lag"] == 1 && up["stats"] == 1 })
}
