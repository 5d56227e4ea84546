package bench

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is the result of a benchmark.
type Report struct {
	Begun        time.Time     `json:"begun"`
	Seconds      float64       `json:"seconds"`
	Machine      Machine       `json:"machine"`
	Repeat       int           `json:"repeat"`
	Quick        bool          `json:"quick,omitempty"` // with tiny sizes, so the figures mean nothing
	Measurements []Measurement `json:"measurements"`
	Figures      []Figure      `json:"figures,omitempty"`
	Stores       []Store       `json:"stores,omitempty"`
}

// Machine describes the machine and the software of a benchmark.
type Machine struct {
	Cores      int               `json:"cores"`
	System     string            `json:"system"`
	Go         string            `json:"go"`
	PostgreSQL string            `json:"postgresql"`
	Settings   map[string]string `json:"settings"`
	// Peers are the versions of Node and of the packages; empty if they were not measured.
	Peers map[string]string `json:"peers,omitempty"`
}

// Measurement is a comparison of pgagui with another side.
type Measurement struct {
	Phase string `json:"phase"`
	What  string `json:"what"`
	// Unit is the unit of the figures: events/s, bytes/event, ms, bytes.
	Unit    string `json:"unit"`
	Ours    Side   `json:"ours"`
	Against Side   `json:"against"`
	// Ratio is ours divided by theirs, pair by pair.
	Ratio  Spread  `json:"ratio"`
	Target *Target `json:"target,omitempty"`
}

// Side is one side of a comparison.
type Side struct {
	Name   string    `json:"name"`
	Values []float64 `json:"values"`
	Median float64   `json:"median"`
}

// Figure is a measurement without another side.
type Figure struct {
	Phase  string    `json:"phase"`
	What   string    `json:"what"`
	Unit   string    `json:"unit"`
	Values []float64 `json:"values"`
	Spread Spread    `json:"spread"`
}

// Spread summarizes values.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// Target is the target of a ratio.
type Target struct {
	Number string `json:"number"`
	// AtLeast or AtMost limits the median.
	AtLeast float64 `json:"atLeast,omitempty"`
	AtMost  float64 `json:"atMost,omitempty"`
	Reached bool    `json:"reached"`
}

func atLeast(number string, ratio float64) *Target { return &Target{Number: number, AtLeast: ratio} }
func atMost(number string, ratio float64) *Target  { return &Target{Number: number, AtMost: ratio} }

// add completes a measurement and adds it to the report.
func (r *Report) add(m Measurement, ours, against []float64) {
	m.Ours.Values, m.Against.Values = ours, against
	m.Ours.Median, m.Against.Median = SpreadOf(ours).Median, SpreadOf(against).Median
	ratios := make([]float64, len(ours))
	for i := range ours {
		ratios[i] = ours[i] / against[i]
	}
	m.Ratio = SpreadOf(ratios)
	if m.Target != nil {
		m.Target.Reached = m.Ratio.Median >= m.Target.AtLeast && (m.Target.AtMost == 0 || m.Ratio.Median <= m.Target.AtMost)
	}
	r.Measurements = append(r.Measurements, m)
}

// notes are additional figures of rounds, in the order in which they were first added.
type notes []Figure

// add adds the value of a round.
func (n *notes) add(what, unit string, value float64) {
	i := slices.IndexFunc(*n, func(figure Figure) bool { return figure.What == what })
	if i < 0 {
		i = len(*n)
		*n = append(*n, Figure{What: what, Unit: unit})
	}
	(*n)[i].Values = append((*n)[i].Values, value)
}

// addDelays adds the median and the 99th percentile of delays.
func (n *notes) addDelays(what string, milliseconds []float64) {
	n.add(what+", p50", "ms", percentile(milliseconds, 0.5))
	n.add(what+", p99", "ms", percentile(milliseconds, 0.99))
}

// addFigures completes figures and adds them to the report. Their first round, a warm-up, does not
// count.
func (r *Report) addFigures(phase string, figures notes) {
	for _, figure := range figures {
		figure.Phase, figure.Values = phase, figure.Values[1:]
		figure.Spread = SpreadOf(figure.Values)
		r.Figures = append(r.Figures, figure)
	}
}

// addFigure adds a figure that was measured once.
func (r *Report) addFigure(phase, what, unit string, value float64) {
	r.Figures = append(r.Figures, Figure{Phase: phase, What: what, Unit: unit, Values: []float64{value}, Spread: SpreadOf([]float64{value})})
}

// SpreadOf returns the spread of some values.
func SpreadOf(values []float64) Spread {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	median := sorted[middle]
	if len(sorted)%2 == 0 {
		median = (sorted[middle-1] + sorted[middle]) / 2
	}
	return Spread{median, sorted[0], sorted[len(sorted)-1]}
}

// percentile returns the value that this share of the values does not exceed.
func percentile(values []float64, share float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, int(math.Ceil(share*float64(len(sorted))))-1)]
}

// Missed returns the number of targets that were not reached.
func (r *Report) Missed() int {
	missed := 0
	for _, m := range r.Measurements {
		if m.Target != nil && !m.Target.Reached {
			missed++
		}
	}
	return missed
}

// WriteTable writes the report as a table.
func (r *Report) WriteTable(out io.Writer) error {
	m := r.Machine
	fmt.Fprintf(out, "%s, %d cores, %s, PostgreSQL %s (%s)\n", m.System, m.Cores, m.Go, m.PostgreSQL, list(m.Settings))
	if len(m.Peers) > 0 {
		fmt.Fprintf(out, "peers: %s\n", list(m.Peers))
	} else {
		fmt.Fprintln(out, "The official client and LangGraph were not measured (flag --peers).")
	}
	fmt.Fprintf(out, "%d pairs each, %.0f s in all. A ratio is ours divided by theirs: median [smallest … largest].\n", r.Repeat, r.Seconds)
	if r.Quick {
		fmt.Fprintln(out, "The conversations are tiny, so the figures mean nothing.")
	}
	fmt.Fprintln(out)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "#\twhat\tours\tagainst\t\tratio\ttarget\t")
	for _, m := range r.Measurements {
		number, wanted, verdict := "", "", ""
		if m.Target != nil {
			number, wanted, verdict = m.Target.Number, m.Target.String(), "missed"
			if m.Target.Reached {
				verdict = "ok"
			}
		}
		ratio := ratioText(m.Ratio.Median)
		if len(m.Ours.Values) > 1 {
			ratio += fmt.Sprintf(" [%s … %s]", ratioText(m.Ratio.Min), ratioText(m.Ratio.Max))
		}
		fmt.Fprintf(table, "%s\t%s\t%s %s\t%s\t%s\t%s\t%s\t%s\n", number, m.What, number3(m.Ours.Median), m.Unit,
			number3(m.Against.Median), m.Against.Name, ratio, wanted, verdict)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if len(r.Stores) > 0 {
		if err := writeStores(out, r.Stores); err != nil {
			return err
		}
	}
	if len(r.Figures) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	fmt.Fprintln(table, "what\tmedian\tspread\t")
	for _, figure := range r.Figures {
		fmt.Fprintf(table, "%s\t%s %s\t[%s … %s]\t\n", figure.What, number3(figure.Spread.Median), figure.Unit,
			number3(figure.Spread.Min), number3(figure.Spread.Max))
	}
	return table.Flush()
}

// list formats names and values, sorted by name.
func list(values map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		parts = append(parts, name+" "+values[name])
	}
	return strings.Join(parts, ", ")
}

func (t *Target) String() string {
	if t.AtMost > 0 {
		return "at most " + ratioText(t.AtMost)
	}
	return "at least " + ratioText(t.AtLeast)
}

// ratioText formats a ratio, a small one as a fraction: 1/6.3, 0.65, 12.5.
func ratioText(ratio float64) string {
	if ratio > 0 && ratio <= 0.2 {
		return "1/" + strings.TrimSuffix(strconv.FormatFloat(1/ratio, 'f', 1, 64), ".0")
	}
	if ratio >= 10 {
		return strconv.FormatFloat(ratio, 'f', 1, 64)
	}
	return strconv.FormatFloat(ratio, 'f', 2, 64)
}

// number3 formats a number with three significant digits, from 1,000 on with all digits of its
// integer part: 0.0123, 4.56, 789, 12,345.
func number3(value float64) string {
	if math.Abs(value) < 1000 {
		return strconv.FormatFloat(value, 'g', 3, 64)
	}
	digits := strconv.FormatFloat(value, 'f', 0, 64)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
