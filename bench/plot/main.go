// Command plot draws the report of the benchmark as SVG files for the documentation:
//
//	go run ./bench/cmd/bench --report report.json && go run ./bench/plot report.json docs/bench
//
// It is a separate program, so that pgagui does not contain a plotting library.
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
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/pgagui/pgagui/bench"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "plot:", err)
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
	for file, draw := range map[string]func([]bench.Measurement) (*canvas, error){"ratios.svg": drawRatios, "storage.svg": drawStorage} {
		drawn, err := draw(report.Measurements)
		if err != nil {
			return err
		}
		if drawn == nil {
			continue // not measured in this report
		}
		if err := write(drawn, filepath.Join(folder, file)); err != nil {
			return err
		}
	}
	return nil
}

func write(drawn *canvas, name string) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := drawn.WriteTo(file); err != nil {
		return err
	}
	return file.Close()
}

var (
	oursColor    = color.RGBA{R: 0x33, G: 0x67, B: 0x91, A: 0xff}
	againstColor = color.RGBA{R: 0xb8, G: 0xc4, B: 0xce, A: 0xff}
	targetColor  = color.RGBA{R: 0xd0, G: 0x50, B: 0x30, A: 0xff}
)

const (
	width      = 25 * vg.Centimeter
	rowHeight  = 0.6 * vg.Centimeter
	headHeight = 1.8 * vg.Centimeter
	axisHeight = 0.7 * vg.Centimeter
	margin     = 0.4 * vg.Centimeter
)

// sans is the font of all labels.
var sans = font.Font{Typeface: "Liberation", Variant: "Sans"}

// A chart has rows of figures, the first on top. Above them are the title, the name of the axis,
// and the legend, which hides no figure there.
type chart struct {
	*plot.Plot
	title, axis string
	rows        int
	legend      plot.Legend
}

func newChart(title, axis string, labels []string) *chart {
	c := &chart{Plot: plot.New(), title: title, axis: axis, rows: len(labels), legend: plot.NewLegend()}
	c.X.Tick.Label.Font = font.From(sans, 10)
	c.Y.Tick.Label.Font = font.From(sans, 10)
	labels = slices.Clone(labels)
	slices.Reverse(labels)
	c.NominalY(labels...)
	c.Y.Min, c.Y.Max = -0.5, float64(len(labels))-0.5
	c.legend.TextStyle.Font = font.From(sans, 10)
	c.legend.Top, c.legend.Left = true, true
	c.legend.Padding = vg.Points(3)
	return c
}

// add draws data, and adds it to the legend unless the name is empty.
func (c *chart) add(name string, data interface {
	plot.Plotter
	plot.Thumbnailer
}) {
	c.Add(data)
	if name != "" {
		c.legend.Add(name, data)
	}
}

// draw draws the chart on a white background, because a page may be dark.
func (c *chart) draw() *canvas {
	heading, axis := c.Title.TextStyle, c.legend.TextStyle
	heading.Font, heading.XAlign = font.From(sans, 14), draw.XLeft
	axis.YAlign = draw.YTop
	whole := vg.Rectangle{Max: vg.Point{X: width}}
	whole.Max.Y = margin + headHeight + vg.Length(c.rows)*rowHeight + axisHeight + margin
	out := newCanvas(whole.Max.X, whole.Max.Y)
	out.SetColor(color.White)
	// A viewer that rounds the size may show a little of the area beyond the edges.
	out.Fill(vg.Rectangle{Min: vg.Point{X: -margin, Y: -margin}, Max: whole.Max.Add(vg.Point{X: margin, Y: margin})}.Path())

	inner := draw.Crop(draw.Canvas{Canvas: out, Rectangle: whole}, margin, -margin, margin, -margin)
	inner.FillText(heading, vg.Point{X: inner.Min.X, Y: inner.Max.Y}, c.title)
	inner.FillText(axis, vg.Point{X: inner.Min.X, Y: inner.Max.Y - vg.Points(20)}, c.axis)
	c.legend.Draw(draw.Crop(inner, width/2, 0, 0, 0))
	// The label of the last tick may extend beyond the right edge.
	c.Plot.Draw(draw.Crop(inner, 0, -margin, 0, -headHeight))
	return out
}

// comparedWithItself lists the phases in which both sides are pgagui.
var comparedWithItself = []string{"history", "threads", "tenants", "guards"}

// drawRatios draws how many times better than the other side pgagui is, with the spread and the
// targets.
func drawRatios(measurements []bench.Measurement) (*canvas, error) {
	measurements = slices.DeleteFunc(slices.Clone(measurements), func(m bench.Measurement) bool {
		return slices.Contains(comparedWithItself, m.Phase)
	})
	if len(measurements) == 0 {
		return nil, nil
	}
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
	c := newChart("pgagui beside its peers", "times as good as the other side (logarithmic): right of 1, pgagui is better", labels)
	c.X.Scale = plot.LogScale{}
	c.X.Tick.Marker = plot.LogTicks{Prec: -1}
	c.Add(plotter.NewGrid())
	equal, err := plotter.NewLine(plotter.XYs{{X: 1, Y: c.Y.Min}, {X: 1, Y: c.Y.Max}})
	if err != nil {
		return nil, err
	}
	equal.Width = vg.Points(1)
	c.Add(equal)

	points, err := plotter.NewScatter(medians)
	if err != nil {
		return nil, err
	}
	points.GlyphStyle = draw.GlyphStyle{Color: oursColor, Radius: vg.Points(4), Shape: draw.CircleGlyph{}}
	bars, err := plotter.NewXErrorBars(struct {
		plotter.XYs
		plotter.XErrors
	}{medians, spreads})
	if err != nil {
		return nil, err
	}
	bars.LineStyle.Color = oursColor
	c.Add(bars)
	c.add("median, between the smallest and the largest", points)
	if len(targets) > 0 {
		limits, err := plotter.NewScatter(targets)
		if err != nil {
			return nil, err
		}
		limits.GlyphStyle = draw.GlyphStyle{Color: targetColor, Radius: vg.Points(6), Shape: draw.PlusGlyph{}}
		c.add("target", limits)
	}
	c.X.Min, c.X.Max = c.X.Min/1.5, c.X.Max*1.5
	return c.draw(), nil
}

func lessIsBetter(m bench.Measurement) bool { return !strings.HasSuffix(m.Unit, "/s") }

// drawStorage draws the bytes per event of both sides.
func drawStorage(measurements []bench.Measurement) (*canvas, error) {
	var labels []string
	var ours, against plotter.Values
	for _, m := range measurements {
		if m.Phase == "storage" {
			labels = append(labels, m.What+" / "+m.Against.Name)
			ours, against = append(ours, m.Ours.Median), append(against, m.Against.Median)
		}
	}
	if len(labels) == 0 {
		return nil, nil
	}
	c := newChart("Bytes on disk", "bytes/event", labels)
	c.X.Min = 0
	const thickness = rowHeight / 3
	for _, bars := range []struct {
		name   string
		values plotter.Values
		color  color.Color
		offset vg.Length
	}{{"pgagui", ours, oursColor, thickness / 2}, {"the other side", against, againstColor, -thickness / 2}} {
		slices.Reverse(bars.values) // the first row is the top one
		drawn, err := plotter.NewBarChart(bars.values, thickness)
		if err != nil {
			return nil, err
		}
		drawn.Horizontal, drawn.Color, drawn.Offset, drawn.LineStyle.Width = true, bars.color, bars.offset, 0
		c.add(bars.name, drawn)
	}
	return c.draw(), nil
}
