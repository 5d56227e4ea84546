package bench_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgagui/pgagui/bench"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testdb"
	"github.com/pgagui/pgagui/internal/testneeds"
)

func TestMain(m *testing.M) {
	bench.ServeInstead()
	testdb.Main(m)
}

// Every phase has figures for both sides, and no database remains on the server.
func TestEveryPhaseMeasuresAndCleansUp(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes")
	}
	url := testdb.Empty(t)
	options := bench.Options{DatabaseURL: url, Phases: bench.Phases(), Repeat: 1, Quick: true, PythonPeers: pythonPeers}
	if _, err := os.Stat(pythonPeers + "/venv/installed"); err != nil {
		t.Log("without the peers that run in Python: run make bench-peers-python")
		options.Phases = slices.DeleteFunc(options.Phases, func(phase string) bool { return phase == "peers" })
	}
	if _, err := os.Stat("peers/node_modules"); err == nil {
		options.Peers = "peers"
	} else {
		t.Log("without the peers that run in Node: run npm ci in bench/peers")
	}
	report := must.Have(bench.Run(t.Context(), options))(t)
	measured := map[string]bool{}
	for _, m := range report.Measurements {
		measured[m.Phase] = true
		if len(m.Ours.Values) == 0 || len(m.Ours.Values) != len(m.Against.Values) {
			t.Errorf("%s: %d figures of ours, %d of theirs", m.What, len(m.Ours.Values), len(m.Against.Values))
		}
		if !(m.Ratio.Min > 0 && m.Ratio.Min <= m.Ratio.Median && m.Ratio.Median <= m.Ratio.Max) {
			t.Errorf("%s: ratio %+v", m.What, m.Ratio)
		}
	}
	for _, figure := range report.Figures {
		if len(figure.Values) == 0 || figure.Spread.Median < 0 || !(figure.Spread.Min <= figure.Spread.Median && figure.Spread.Median <= figure.Spread.Max) {
			t.Errorf("%s: %+v", figure.What, figure)
		}
	}
	for _, phase := range options.Phases {
		if !measured[phase] {
			t.Errorf("phase %s measured nothing", phase)
		}
	}

	var table bytes.Buffer
	must.Do(t, report.WriteTable(&table))
	for _, m := range report.Measurements {
		if !strings.Contains(table.String(), m.What) {
			t.Errorf("the table does not have %q:\n%s", m.What, &table)
		}
	}
	for _, figure := range report.Figures {
		if !strings.Contains(table.String(), figure.What) {
			t.Errorf("the table does not have %q:\n%s", figure.What, &table)
		}
	}
	text := must.Have(json.Marshal(report))(t)
	var decoded bench.Report
	if err := json.Unmarshal(text, &decoded); err != nil || len(decoded.Measurements) != len(report.Measurements) || len(decoded.Figures) != len(report.Figures) {
		t.Errorf("the JSON does not decode to the report: %v\n%s", err, text)
	}

	connection := must.Have(pgx.Connect(context.Background(), url))(t)
	defer connection.Close(context.Background())
	var left int
	must.Do(t, connection.QueryRow(context.Background(), `select count(*) from pg_database where datname like 'pgagui\_bench\_%'`).Scan(&left))
	if left > 0 {
		t.Errorf("%d databases are left", left)
	}
}

const pythonPeers = "peers/python"

// The stores of conversations of Python frameworks, and pgagui beside them, return what a miniature of the corpus wrote.
func TestStoresOfPythonFrameworksAreMeasured(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(pythonPeers + "/venv/installed"); err != nil {
		testneeds.Skip(t, testneeds.BenchPython, "run make bench-peers-python")
	}
	report := must.Have(bench.Run(t.Context(), bench.Options{DatabaseURL: testdb.Empty(t), Phases: []string{"peers"}, Repeat: 1, Quick: true, PythonPeers: pythonPeers}))(t)
	if len(report.Stores) < 11 {
		t.Errorf("%d stores", len(report.Stores))
	}
	for _, store := range report.Stores {
		for _, figures := range []bench.StoreFigures{store.Text, store.Image} {
			if len(figures.Write) != 1 || figures.Restore[0] <= 0 || figures.Statements < 4 {
				t.Errorf("%s: %+v", store.Name, figures)
			}
		}
		if store.Image.KB < 1000 {
			t.Errorf("%s: an image takes %v KB", store.Name, store.Image.KB)
		}
	}
}

func TestUnknownPhaseIsRefused(t *testing.T) {
	t.Parallel()
	_, err := bench.Run(t.Context(), bench.Options{Phases: []string{"everything"}})
	if err == nil || !strings.Contains(err.Error(), `there is no phase "everything" (expected append,`) {
		t.Errorf("error %v", err)
	}
}
