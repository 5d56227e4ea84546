package cli

import (
	"strings"

	"github.com/pgagui/pgagui"
)

// StatusText is a status as people read it.
func StatusText(status pgagui.Status) string { return strings.ReplaceAll(string(status), "_", " ") }

// WhyText says why a run ended with a status; empty if nothing is known.
func WhyText(status pgagui.Status, end pgagui.RunEnd) string {
	switch status {
	case pgagui.Failed:
		return strings.TrimSuffix(strings.TrimPrefix(end.ErrorCode+": "+end.ErrorMessage, ": "), ": ")
	case pgagui.CutOff:
		return end.CutOffReason
	case pgagui.Cancelled:
		return end.StopReason
	}
	return ""
}
