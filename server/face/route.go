package face

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/pgagui/pgagui/server/access"
	"github.com/pgagui/pgagui/server/core"
	"github.com/pgagui/pgagui/server/problem"
)

// positionHeader names, in a request, what the answer must include: values of this header in earlier
// answers (transactions), or ids of frames of the thread, separated by commas. Answers of requests
// that wrote have the header.
const positionHeader = "Pgagui-Position"

// A position that names a transaction is tx-ID, in a cluster tx-ID@NODE.
const (
	writePrefix   = "tx-"
	nodeSeparator = "@"
)

// withRoute gives a request its route. right is what its endpoint needs: if that is access.Read, a
// standby may answer the request.
func (s *HTTP) withRoute(w http.ResponseWriter, r *http.Request, right access.Rights) (*http.Request, error) {
	if right != access.Read {
		written := map[string]string{} // the last one of each node
		return r.WithContext(s.RouteWrite(r.Context(), func(transaction core.Transaction) {
			position := writePrefix + transaction.ID
			if transaction.Node != "" {
				position += nodeSeparator + transaction.Node
			}
			written[transaction.Node] = position
			w.Header().Set(positionHeader, strings.Join(slices.Sorted(maps.Values(written)), ", "))
		})), nil
	}
	seen, err := readSeen(r)
	return r.WithContext(s.RouteRead(r.Context(), seen)), err
}

// readSeen reads what a request names as seen.
func readSeen(r *http.Request) (named core.Seen, err error) {
	named.ThreadID = r.PathValue("thread")
	for text := range strings.SplitSeq(r.Header.Get(positionHeader), ",") {
		text = strings.TrimSpace(text)
		if id, isWrite := strings.CutPrefix(text, writePrefix); isWrite {
			id, node, _ := strings.Cut(id, nodeSeparator)
			if _, err := strconv.ParseUint(id, 10, 63); err != nil {
				return named, problem.Errorf(http.StatusUnprocessableEntity, "%s: %.100q is not a position that an answer had", positionHeader, text)
			}
			named.Transactions = append(named.Transactions, core.Transaction{Node: node, ID: id})
			continue
		}
		seen, err := core.ReadPlace(text)
		if err != nil {
			return named, err
		}
		named.Seq = max(named.Seq, seen.Seq)
	}
	query := r.URL.Query()
	places := []string{r.Header.Get("Last-Event-ID")}
	for _, name := range []string{"last_event_id", "after_seq", "at_seq", "from_at_seq", "to_at_seq"} {
		places = append(places, query.Get(name))
	}
	for _, text := range places {
		if seen, err := core.ReadPlace(text); err == nil { // otherwise the endpoint refuses it
			named.Seq = max(named.Seq, seen.Seq)
		}
	}
	return named, nil
}
