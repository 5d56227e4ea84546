package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/bench"
)

func TestReportBecomesPlots(t *testing.T) {
	t.Parallel()
	side := func(name string, figure float64) bench.Side {
		return bench.Side{Name: name, Values: []float64{figure}, Median: figure}
	}
	text, err := json.Marshal(bench.Report{Measurements: []bench.Measurement{
		{
			Phase: "storage", What: "log on disk", Unit: "bytes/event", Ours: side("pgagui", 40), Against: side("plain table", 400),
			Ratio: bench.Spread{Median: 0.1, Min: 0.09, Max: 0.11}, Target: &bench.Target{Number: "3", AtMost: 0.5},
		},
		{
			Phase: "read", What: "read a thread", Unit: "events/s", Ours: side("pgagui", 300), Against: side("plain table", 200),
			Ratio: bench.Spread{Median: 1.5, Min: 1.5, Max: 1.5},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	report := filepath.Join(folder, "report.json")
	if err := os.WriteFile(report, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{report, filepath.Join(folder, "plots")}); err != nil {
		t.Fatal(err)
	}
	for file, texts := range map[string][]string{
		"ratios.svg":  {"log on disk / plain table", "read a thread / plain table", "target"},
		"storage.svg": {"log on disk", "bytes/event"},
	} {
		drawn, err := os.ReadFile(filepath.Join(folder, "plots", file))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, text := range texts {
			if !strings.Contains(string(drawn), text) {
				t.Errorf("%s does not say %q", file, text)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(folder, "plots", "compact.svg")); err == nil {
		t.Error("a plot of a phase that was not measured")
	}
}
