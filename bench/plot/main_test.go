package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgagui/pgagui/bench"
	"github.com/pgagui/pgagui/internal/must"
	"github.com/pgagui/pgagui/internal/testfile"
)

func TestReportBecomesPlots(t *testing.T) {
	t.Parallel()
	text := must.Have(json.Marshal(bench.Report{Measurements: someMeasurements()}))(t)
	folder := t.TempDir()
	report := filepath.Join(folder, "report.json")
	testfile.Write(t, report, text)
	must.Do(t, run([]string{report, filepath.Join(folder, "plots")}))
	for _, file := range []string{"ratios.svg", "storage.svg"} {
		drawn, err := os.ReadFile(filepath.Join(folder, "plots", file))
		if err != nil {
			t.Error(err)
		} else if strings.Contains(string(drawn), "<text") || strings.Contains(string(drawn), "font-family") {
			t.Errorf("%s depends on the fonts of its viewer", file)
		}
	}
}

func someMeasurements() []bench.Measurement {
	side := func(name string, figure float64) bench.Side {
		return bench.Side{Name: name, Values: []float64{figure}, Median: figure}
	}
	return []bench.Measurement{
		{
			Phase: "storage", What: "log on disk", Unit: "bytes/event", Ours: side("pgagui", 40), Against: side("plain table", 400),
			Ratio: bench.Spread{Median: 0.1, Min: 0.09, Max: 0.11}, Target: &bench.Target{Number: "3", AtMost: 0.5},
		},
		{
			Phase: "read", What: "read a thread", Unit: "events/s", Ours: side("pgagui", 300), Against: side("plain table", 200),
			Ratio: bench.Spread{Median: 1.5, Min: 1.5, Max: 1.5},
		},
		{
			Phase: "storage", What: "log and snapshots on disk, a thread of 50 runs, with a name that is long", Unit: "bytes/event",
			Ours: side("pgagui", 4), Against: side("LangGraph, DeltaChannel", 4000),
			Ratio: bench.Spread{Median: 0.001, Min: 0.0001, Max: 0.11},
		},
		{
			Phase: "history", What: "a page", Unit: "ms", Ours: side("pgagui", 1), Against: side("first page", 1), Ratio: bench.Spread{Median: 1, Min: 1, Max: 1},
		},
	}
}

// Labels name the measurements. All labels and the legend are inside the picture, and none overlaps
// another.
func TestLabelsAreLegible(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		draw func([]bench.Measurement) (*canvas, error)
		want []string
	}{
		"ratios":  {drawRatios, []string{"log on disk / plain table", "read a thread / plain table", "target", "pgagui beside its peers"}},
		"storage": {drawStorage, []string{"log on disk / plain table", "bytes/event", "pgagui", "the other side"}},
	} {
		drawn := must.Have(test.draw(someMeasurements()))(t)
		written := map[string]bool{}
		width, height := drawn.Size()
		for i, one := range drawn.labels {
			written[one.text] = true
			if one.box.Min.X < 0 || one.box.Min.Y < 0 || one.box.Max.X > width || one.box.Max.Y > height {
				t.Errorf("%s: %q is cut off: %v in %v × %v", name, one.text, one.box, width, height)
			}
			for _, other := range drawn.labels[:i] {
				if one.box.Min.X < other.box.Max.X && other.box.Min.X < one.box.Max.X && one.box.Min.Y < other.box.Max.Y && other.box.Min.Y < one.box.Max.Y {
					t.Errorf("%s: %q overlaps %q: %v, %v", name, one.text, other.text, one.box, other.box)
				}
			}
		}
		for _, text := range test.want {
			if !written[text] {
				t.Errorf("%s does not say %q", name, text)
			}
		}
		if written["a page / first page"] {
			t.Errorf("%s compares pgagui with itself", name)
		}
	}
}

func TestNothingIsDrawnOfWhatWasNotMeasured(t *testing.T) {
	t.Parallel()
	for _, draw := range []func([]bench.Measurement) (*canvas, error){drawRatios, drawStorage} {
		if drawn, err := draw(someMeasurements()[3:]); drawn != nil || err != nil {
			t.Errorf("%v, %v", drawn, err)
		}
	}
}
