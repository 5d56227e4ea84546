// Command plot draws the report of the benchmark as SVG files, for the documentation:
//
//	go run ./bench/cmd/bench --report report.json && go run ./bench/plot report.json docs/bench
//
// It is a program of its own so that pgagui itself has no plotting library in it.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/pgagui/pgagui/bench"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) != 2 {
		return errors.New("usage: plot REPORT.json FOLDER")
	}
	text, err := os.ReadFile(arguments[0])
	if err != nil {
		return err
	}
	var report bench.Report
	if err := json.Unmarshal(text, &report); err != nil {
		return fmt.Errorf("%s: %w", arguments[0], err)
	}
	folder := arguments[1]
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := drawRatios(report.Measurements, filepath.Join(folder, "ratios.svg")); err != nil {
		return err
	}
	for _, phase := range []string{"storage", "compact"} {
		measurements := slices.DeleteFunc(slices.Clone(report.Measurements), func(m bench.Measurement) bool { return m.Phase != phase })
		if len(measurements) == 0 {
			continue // not measured in this report
		}
		if err := drawFigures(measurements, filepath.Join(folder, phase+".svg")); err != nil {
			return err
		}
	}
	return nil
}

var (
	oursColor    = color.RGBA{R: 0x33, G: 0x67, B: 0x91, A: 0xff}
	againstColor = color.RGBA{R: 0xb8, G: 0xc4, B: 0xce, A: 0xff}
	targetColor  = color.RGBA{R: 0xd0, G: 0x50, B: 0x30, A: 0xff}
)

const (
	width     = 22 * vg.Centimeter
	rowHeight = 0.9 * vg.Centimeter
	margin    = 3.5 * vg.Centimeter
)

// newChart has a row for each label, the first on top.
func newChart(title, axis string, labels []string) *plot.Plot {
	chart := plot.New()
	chart.Title.Text = title
	chart.X.Label.Text = axis
	chart.Legend.Top = true
	slices.Reverse(labels)
	chart.NominalY(labels...)
	chart.Y.Max += 1.5 // room for the legend
	return chart
}

func save(chart *plot.Plot, rows int, file string) error {
	return chart.Save(width, margin+vg.Length(rows)*rowHeight, file)
}

// drawRatios shows how many times as good as the other side pgagui is, with the spread and the targets.
func drawRatios(measurements []bench.Measurement, file string) error {
	var labels []string
	var medians, targets plotter.XYs
	var spreads plotter.XErrors
	for i, m := range measurements {
		labels = append(labels, m.What+" / "+m.Against.Name)
		row := float64(len(measurements) - 1 - i)
		median, low, high := m.Ratio.Median, m.Ratio.Min, m.Ratio.Max
		if lessIsBetter(m) {
			median, low, high = 1/median, 1/high, 1/low
		}
		medians = append(medians, plotter.XY{X: median, Y: row})
		spreads = append(spreads, struct{ Low, High float64 }{low - median, high - median})
		if t := m.Target; t != nil {
			limit := t.AtLeast
			if t.AtMost > 0 {
				limit = 1 / t.AtMost
			}
			targets = append(targets, plotter.XY{X: limit, Y: row})
		}
	}
	chart := newChart("pgagui beside its peers", "times as good, logarithmic", labels)
	chart.X.Scale = plot.LogScale{}
	chart.X.Tick.Marker = plot.LogTicks{Prec: -1}
	chart.Add(plotter.NewGrid())

	points, err := plotter.NewScatter(medians)
	if err != nil {
		return err
	}
	points.GlyphStyle = draw.GlyphStyle{Color: oursColor, Radius: vg.Points(4), Shape: draw.CircleGlyph{}}
	bars, err := plotter.NewXErrorBars(struct {
		plotter.XYs
		plotter.XErrors
	}{medians, spreads})
	if err != nil {
		return err
	}
	bars.LineStyle.Color = oursColor
	limits, err := plotter.NewScatter(targets)
	if err != nil {
		return err
	}
	limits.GlyphStyle = draw.GlyphStyle{Color: targetColor, Radius: vg.Points(5), Shape: draw.PlusGlyph{}}
	chart.Add(bars, points, limits)
	chart.Legend.Add("median, smallest and largest", points)
	chart.Legend.Add("target", limits)
	return save(chart, len(measurements), file)
}

func lessIsBetter(m bench.Measurement) bool { return !strings.HasSuffix(m.Unit, "/s") }

// drawFigures shows the figures of both sides.
func drawFigures(measurements []bench.Measurement, file string) error {
	var labels []string
	var ours, against plotter.Values
	for _, m := range slices.Backward(measurements) {
		ours = append(ours, m.Ours.Median)
		against = append(against, m.Against.Median)
	}
	for _, m := range measurements {
		labels = append(labels, m.What+"\n"+m.Ours.Name+" / "+m.Against.Name)
	}
	first := measurements[0]
	chart := newChart(first.Phase, first.Unit, labels)
	thickness := rowHeight / 3
	for _, bars := range []struct {
		name   string
		values plotter.Values
		color  color.Color
		offset vg.Length
	}{{"pgagui", ours, oursColor, thickness / 2}, {"the other", against, againstColor, -thickness / 2}} {
		drawn, err := plotter.NewBarChart(bars.values, thickness)
		if err != nil {
			return err
		}
		drawn.Horizontal, drawn.Color, drawn.Offset, drawn.LineStyle.Width = true, bars.color, bars.offset, 0
		chart.Add(drawn)
		chart.Legend.Add(bars.name, drawn)
	}
	return save(chart, len(measurements), file)
}
