package serve

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/cmd/pgagui/internal/cli"
	"github.com/pgagui/pgagui/cmd/pgagui/internal/clitest"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testfile"
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

func scrape(t *testing.T, p *clitest.Running) scraped {
	t.Helper()
	answer := must.Have(http.Get(servingAt.FindStringSubmatch(p.Log)[1]))(t)
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
func serveAll(c clitest.CommandLine) (s *clitest.Served, token string) {
	c.T.Helper()
	folder := c.T.TempDir()
	file := filepath.Join(folder, "tokens.yaml")
	token = c.Token(file, "web", "acme", "read,write")
	clitest.WriteCertificate(c.T, filepath.Join(folder, "crt"), filepath.Join(folder, "key"), 1)
	config := clitest.WriteFile(c.T, "serve.yaml", "worker:", "  compact: '@every 1s'", "  verify: '@every 1s'", "  databaseUrlFile: "+clitest.WriteFile(c.T, "worker", c.DatabaseURL+"&application_name=upkeep"))
	return c.Serve("--config", config, "--token-file", file, "--metrics-listen", "127.0.0.1:0", "--agent", "assistant="+clitest.NewSample(c.T),
		"--live-database-url", c.DatabaseURL, "--read-database-url", c.DatabaseURL, "--tls-certificate", filepath.Join(folder, "crt"), "--tls-key", filepath.Join(folder, "key")), token
}

var (
	label = regexp.MustCompile(`\{\{ \$labels\.(\w+) \}\}`)
	alert = regexp.MustCompile(`- alert: (\w+)\n(?:.*\n)*?        labels: \{severity: (\w+)\}\n(?:.*\n)*?          description: (.*)`)
)

// metricsPage is docs/reference/metrics.md: the metrics of pgagui with their types, labels and texts, and the alerts.
func (s scraped) metricsPage(rules string) string {
	var page strings.Builder
	page.WriteString("# Metrics\n\nWhat `--metrics-listen` serves of pgagui. [operations.md](../operations.md#metrics) says how to read it, and has the alerts.\n\n" +
		"This page is written from a server with everything: make golden\n\n| metric | type | meaning |\n|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(s.types)) {
		if !strings.HasPrefix(name, "pgagui_") {
			continue
		}
		_, help, _ := strings.Cut(s.text, "# HELP "+name+" ")
		help, _, _ = strings.Cut(help, "\n")
		var labels []string
		if sample := regexp.MustCompile(`(?m)^` + name + `(?:_bucket)?\{(.*)\}`).FindStringSubmatch(s.text); sample != nil {
			for _, label := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(sample[1], -1) {
				if label[1] != "le" {
					labels = append(labels, label[1])
				}
			}
		}
		by := ""
		if labels != nil {
			by = " by " + strings.Join(labels, ", ")
		}
		fmt.Fprintf(&page, "| `%s`%s | %s | %s |\n", name, by, s.types[name], help)
	}
	page.WriteString("\n## Alerts\n\n| alert | severity | what it means |\n|---|---|---|\n")
	for _, match := range alert.FindAllStringSubmatch(rules, -1) {
		fmt.Fprintf(&page, "| `%s` | %s | %s |\n", match[1], match[2], label.ReplaceAllString(strings.Trim(match[3], `"'`), "the $1"))
	}
	return page.String()
}

// A server with everything serves the metrics that docs/reference/metrics.md lists, and those that the
// dashboards and alerts use.
func TestMetricsAreThoseOfTheDocsDashboardsAndAlerts(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	must.Have(testdb.Connect(t, commands.DatabaseURL).Exec(t.Context(), `select agui.move_consumer('copy', null)`))(t)
	s, token := serveAll(commands)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	if answer, text := s.Request(client, token, "POST", "/agent/assistant/run", clitest.RunInput("t", "r", "Hello")); answer.StatusCode != http.StatusOK {
		t.Fatalf("%s %s", answer.Status, text)
	}
	if answer, _ := s.Request(client, "", "GET", "/threads/t/events", ""); answer.StatusCode != http.StatusUnauthorized {
		t.Fatal(answer.Status)
	}
	s.WaitForLine(t, `"msg":"job done","job":"compact"`, `"runs":1`)
	s.WaitForLine(t, `"msg":"job done","job":"verify"`, `"problems":0`)
	got := scrape(t, s.Running)
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

	got.types["pgagui_node_up"] = "gauge" // of clusters: see TestServeOverACluster
	got.text += "# HELP pgagui_node_up 1 if the node of the cluster answers within a second.\n"
	rules := clitest.ReadDeploy(t, "prometheus/alerts.yaml")
	testfile.Golden(t, clitest.Repository("docs/reference/metrics.md"), got.metricsPage(rules))

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
	expressions := regexp.MustCompile(`(?m)^        expr: (?:\|\n((?:          .*\n)+)|(.*))`).FindAllStringSubmatch(rules, -1)
	for _, match := range expressions {
		check("alerts.yaml", strings.TrimSpace(match[1]+match[2]))
	}
	if want := strings.Count(rules, "- alert:"); len(expressions) != want {
		t.Errorf("%d expressions of %d alerts", len(expressions), want)
	}
	// Information that belongs to no picture and no alert.
	for name := range got.types {
		if strings.HasPrefix(name, "pgagui_") && !used[name] && !slices.Contains([]string{
			"pgagui_build_info", "pgagui_pool_acquires_total", "pgagui_pool_waits_total", "pgagui_pool_cancelled_acquires_total", "pgagui_job_last_failure_timestamp_seconds",
		}, name) {
			t.Errorf("no dashboard and no alert uses %s", name)
		}
	}
	s.Terminate(t)
	if code := s.End(t); code != cli.ExitOK {
		t.Errorf("exit code %d:\n%s", code, s.Log)
	}
}

// The dashboard of the facts asks PostgreSQL: each of its queries is right.
func TestDashboardOfTheFacts(t *testing.T) {
	t.Parallel()
	pool := testdb.Pool(t)
	for _, statement := range []string{
		`select agui.append('t', 'r', '[{"type":"RUN_STARTED"},{"type":"RUN_FINISHED","usage":[{"model":"m","inputTokens":1,"outputTokens":2}]}]')`,
		`call agui.project()`,
	} {
		testdb.Exec(t, pool, statement)
	}
	checkDashboard(t, "facts.json", func(where, expression string) {
		for _, scope := range []string{"'*'", "'o''reilly'"} {
			query := strings.NewReplacer("$__timeFrom()", "'2020-01-01T00:00:00Z'", "$__timeTo()", "'2120-01-01T00:00:00Z'", "${scope:sqlstring}", scope).Replace(expression)
			if _, err := pool.Exec(t.Context(), query); err != nil || strings.Contains(query, "$") {
				t.Errorf("%s: %v in %s", where, err, query)
			}
		}
	})
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
				RefID, Expr, RawSQL string
				Datasource          struct{ UID string }
			}
		}
	}
	if err := json.Unmarshal([]byte(clitest.ReadDeploy(t, "grafana/"+file)), &board); err != nil {
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
			if target.Datasource.UID != "${datasource}" || target.RefID == "" || target.RawSQL == "" && !strings.Contains(target.Expr, `job=~"$job",instance=~"$instance"`) {
				t.Errorf("%s: %+v", where, target)
			}
			if target.RawSQL != "" {
				check(where, target.RawSQL)
				continue
			}
			check(where, strings.ReplaceAll(target.Expr, `job=~"$job",instance=~"$instance"`, ""))
		}
	}
}

// Each alert has a case in which it fires, and one in which it does not, and these are right.
func TestAlertRules(t *testing.T) {
	t.Parallel()
	rules, tests := clitest.ReadDeploy(t, "prometheus/alerts.yaml"), clitest.ReadDeploy(t, "prometheus/alerts_test.yaml")
	for _, match := range alert.FindAllStringSubmatch(rules, -1) {
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
		command.Dir = "../../../deploy/prometheus"
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
	if output, err := exec.CommandContext(t.Context(), "promtool", "check", "rules", clitest.WriteFile(t, "dashboards.yaml", text)).CombinedOutput(); err != nil {
		t.Errorf("the dashboards: %v\n%s", err, output)
	}
}

// The worker serves the same metrics of jobs and store.
func TestWorkerServesMetrics(t *testing.T) {
	t.Parallel()
	commands := clitest.NewCommandLine(t)
	clitest.ImportThreads(t, commands, 2)
	w := commands.Start("worker", "--json", "--compact", "@every 1s", "--metrics-listen", "127.0.0.1:0")
	w.WaitForLine(t, `"msg":"job done","job":"compact"`)
	got := scrape(t, w)
	for _, line := range []string{
		`pgagui_job_runs_total{name="compact",outcome="done"} `, `pgagui_job_runs_total{name="compact",outcome="failed"} 0`, "pgagui_store_runs_to_compact 0",
		`pgagui_store_runs{outcome="finished"} 2`, `pgagui_job_last_success_timestamp_seconds{name="compact"} 1`, `pgagui_pool_max_connections{pool="worker"} `,
	} {
		if !got.has(line) {
			t.Errorf("no %s", line)
		}
	}
	w.Terminate(t)
	if code := w.End(t); code != cli.ExitOK {
		t.Errorf("exit code %d:\n%s", code, w.Log)
	}
	commands.MustFail(cli.ExitUsage, "worker", "--metrics-listen", "192.0.2.1:1")
}
