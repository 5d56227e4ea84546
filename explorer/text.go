package explorer

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dustin/go-humanize"

	"github.com/pgagui/pgagui"
)

// ago says how long something is past.
func ago(past time.Duration) string {
	switch {
	case past < 5*time.Second:
		return "now"
	case past < time.Minute:
		return fmt.Sprintf("%d s ago", int(past.Seconds()))
	case past < time.Hour:
		return fmt.Sprintf("%d min ago", int(past.Minutes()))
	case past < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(past.Hours()))
	}
	return fmt.Sprintf("%d days ago", int(past.Hours()/24))
}

// durationText returns a duration with about three digits.
func durationText(duration time.Duration) string {
	switch {
	case duration <= 0:
		return "0 ms"
	case duration < time.Millisecond:
		return strconv.FormatInt(duration.Microseconds(), 10) + " µs"
	case duration < time.Second:
		return strconv.FormatInt(duration.Milliseconds(), 10) + " ms"
	case duration < time.Minute:
		return strconv.FormatFloat(math.Round(duration.Seconds()*100)/100, 'f', -1, 64) + " s"
	case duration < time.Hour:
		return fmt.Sprintf("%d min %d s", int(duration.Minutes()), int(duration.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(duration.Hours()), int(duration.Minutes())%60)
}

// countText returns a number with separators, and the noun behind it if there is one: its plural has an s.
func countText(number any, nouns ...string) string {
	count, _ := strconv.ParseFloat(fmt.Sprint(number), 64) // it is a number of some type
	text := humanize.Comma(int64(math.Round(count)))
	if len(nouns) == 0 {
		return text
	}
	noun := nouns[0]
	if text != "1" {
		noun += "s"
	}
	return text + " " + noun
}

// bytesText returns a size.
func bytesText(size int64) string { return humanize.BytesN(uint64(max(size, 0)), 3) }

// short cuts a text for one line.
func short(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return strings.TrimSpace(string([]rune(text)[:most-1])) + "…"
}

// shownStatus is how a status looks: its word, and the class of its color.
type shownStatus struct{ Text, Class string }

func statusOf(status pgagui.Status) shownStatus {
	switch status {
	case pgagui.Running:
		return shownStatus{"running", "running"}
	case pgagui.Finished:
		return shownStatus{"finished", "good"}
	case pgagui.Interrupted:
		return shownStatus{"waits", "waiting"}
	case pgagui.Cancelled:
		return shownStatus{"cancelled", "quiet"}
	case pgagui.Failed:
		return shownStatus{"failed", "bad"}
	case pgagui.CutOff:
		return shownStatus{"cut off", "bad"}
	}
	return shownStatus{"no runs", "quiet"}
}

// why says in one line why a run ended as it did.
func why(end pgagui.RunEnd) string {
	var parts []string
	for _, part := range []string{end.CutOffReason, end.ErrorMessage, end.StopReason} {
		if part != "" && (len(parts) == 0 || !strings.Contains(parts[0], part)) {
			parts = append(parts, part)
		}
	}
	text := strings.Join(parts, "; ")
	if end.ErrorCode != "" {
		text = strings.TrimSuffix(end.ErrorCode+": "+text, ": ")
	}
	return short(text, 300)
}
