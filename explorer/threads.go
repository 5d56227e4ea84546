package explorer

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/server/problem"
)

// perPage is how many threads a page of a list has.
const perPage = 50

type threadsPage struct {
	Query, Agent     string
	Statuses, Sinces []choice
	IsNarrowed       bool
	Threads          []shownThread
	Found            []found   // in what was said, where the search is on
	FoundTo          time.Time // set if only the messages since then were ranked
	Next             string
	SearchedTo       string
}

// choice is an option of a form.
type choice struct {
	Value, Text string
	IsChosen    bool
}

// found is a message that the search found.
type found struct {
	pgagui.FoundMessage
	Link string
}

// shownThread is a thread of the list.
type shownThread struct {
	pgagui.Thread
	Why string
}

var statusChoices = []choice{
	{Text: "Any"}, {Value: string(pgagui.Running), Text: "Running"}, {Value: string(pgagui.Interrupted), Text: "Waiting"},
	{Value: string(pgagui.Failed), Text: "Failed"}, {Value: string(pgagui.CutOff), Text: "Cut off"},
	{Value: string(pgagui.Cancelled), Text: "Cancelled"}, {Value: string(pgagui.Finished), Text: "Finished"},
}

var sinceChoices = []choice{
	{Text: "Any time"}, {Value: "1h", Text: "The last hour"}, {Value: "24h", Text: "The last day"}, {Value: "168h", Text: "The last week"}, {Value: "720h", Text: "The last month"},
}

func chosen(choices []choice, value string) []choice {
	marked := append([]choice(nil), choices...)
	for i := range marked {
		marked[i].IsChosen = marked[i].Value == value
	}
	return marked
}

// showThreads lists threads, those with the newest activity first.
func (h *Handler) showThreads(q *request) error {
	body := threadsPage{
		Query: q.text("q"), Agent: q.text("agent"),
		Statuses: chosen(statusChoices, q.text("status")), Sinces: chosen(sinceChoices, q.text("since")),
	}
	body.IsNarrowed = body.Query+body.Agent+q.text("status")+q.text("since") != ""
	options := pgagui.ThreadsOptions{
		Agent: body.Agent, Title: body.Query, Status: pgagui.Status(q.text("status")), HeadOnly: true, Archived: pgagui.WithArchived,
		Cursor: q.text("cursor"), Limit: perPage,
	}
	options.HeadOnly = options.Status != ""
	if since := q.text("since"); since != "" {
		past, err := time.ParseDuration(since)
		if err != nil || past < 0 {
			return problem.Errorf(http.StatusBadRequest, "since is %.40q (expected a time such as 24h)", since)
		}
		options.Since = time.Now().Add(-past)
	}
	listed, err := q.store.Threads(q.Context(), options)
	if err != nil {
		return err
	}
	if body.Query != "" && options.Cursor == "" { // the id, or a part of the title
		switch thread, err := q.store.Thread(q.Context(), body.Query); {
		case err == nil:
			body.Threads = append(body.Threads, shown(thread))
		case !errors.Is(err, pgagui.ErrNotFound):
			return err
		}
	}
	if body.Query != "" && options.Cursor == "" && options.Status == "" && body.Agent == "" {
		if body.Found, body.FoundTo, err = q.search(body.Query, options.Since); err != nil {
			return err
		}
	}
	for _, thread := range listed.Threads {
		if len(body.Threads) == 0 || body.Threads[0].ID != thread.ID {
			body.Threads = append(body.Threads, shown(thread))
		}
	}
	if listed.HasMore {
		values := maps.Clone(q.query)
		values.Set("cursor", listed.Cursor)
		body.Next = "./?" + url.Values(values).Encode()
	}
	if !listed.SearchedTo.IsZero() {
		body.SearchedTo = listed.SearchedTo.UTC().Format("2006-01-02 15:04")
	}
	return q.write("threads", "Threads", body)
}

func shown(thread pgagui.Thread) shownThread {
	listed := shownThread{Thread: thread}
	switch thread.Status {
	case pgagui.Failed, pgagui.CutOff, pgagui.Cancelled:
		listed.Why = why(thread.RunEnd)
	}
	return listed
}

// mostFound is how many messages a search shows.
const mostFound = 20

// search returns the messages whose text matches, and back to when they were ranked, if so many match. Where the search is off, there are none.
func (q *request) search(query string, since time.Time) (list []found, searchedTo time.Time, err error) {
	page, err := q.store.Search(q.Context(), query, pgagui.SearchOptions{Since: since, Limit: mostFound})
	if errors.Is(err, pgagui.ErrSearchOff) || errors.Is(err, pgagui.ErrLimitExceeded) {
		return nil, time.Time{}, nil
	}
	for _, message := range page.Messages {
		list = append(list, found{message, link("thread", "id", message.ThreadID, "run", message.RunID, "seq", message.Seq) + "#end"})
	}
	return list, page.SearchedTo, err
}
