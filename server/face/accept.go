package face

import (
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/pgagui/pgagui/server/problem"
)

// binaryType is the type of AG-UI events in protobuf. The server does not write it: see "Server-sent
// events only" in docs/server.md.
const binaryType = "application/vnd.ag-ui.event+proto"

// CheckAccept refuses a request for a stream that takes events in protobuf and no server-sent
// events. Any other header is no reason to refuse: clients often send one that they do not mean.
func CheckAccept(r *http.Request) error {
	quality := map[string]float64{}
	for _, header := range r.Header.Values("Accept") {
		for part := range strings.SplitSeq(header, ",") {
			media, parameters, err := mime.ParseMediaType(part)
			if err != nil {
				continue
			}
			q := 1.0
			if text, isGiven := parameters["q"]; isGiven {
				q, _ = strconv.ParseFloat(text, 64)
			}
			quality[media] = q
		}
	}
	if _, isBinary := quality[binaryType]; !isBinary {
		return nil
	}
	for _, media := range []string{"text/event-stream", "text/*", "*/*"} { // the most specific one counts
		if q, isGiven := quality[media]; isGiven {
			if q > 0 {
				return nil
			}
			break
		}
	}
	return problem.Errorf(http.StatusNotAcceptable, "the server does not write %s (accept text/event-stream)", binaryType)
}

// Accepts reports whether a client names a type of content that it Accepts.
func Accepts(r *http.Request, contentType string) bool {
	for _, header := range r.Header.Values("Accept") {
		for part := range strings.SplitSeq(header, ",") {
			if media, _, err := mime.ParseMediaType(part); err == nil && media == contentType {
				return true
			}
		}
	}
	return false
}
