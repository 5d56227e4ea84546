package pgagui

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"time"

	"github.com/pgagui/pgagui/db"
)

// SearchOptions belong to Search.
type SearchOptions struct {
	// Role is who said it: user, assistant or tool. Empty: any of them.
	Role string
	// Since leaves out what was said before. Zero: nothing.
	Since time.Time
	// AllScopes searches in all scopes that the role sees, not only in the Store's.
	AllScopes bool
	// Cursor goes on behind a page (FoundPage.Cursor).
	Cursor string
	// Limit is how many messages are returned at most, up to 1,000; 0: 20.
	Limit int
}

// FoundPage is a page of messages that Search found.
type FoundPage struct {
	Messages []FoundMessage `json:"messages"`
	// Cursor gives the next page (SearchOptions.Cursor). Empty: there is none.
	Cursor string `json:"cursor,omitempty"`
	// SearchedTo is set if more than 10,000 messages match: only those said since then were ranked.
	SearchedTo time.Time `json:"searchedTo,omitzero"`
}

// FoundMessage is a message whose text matches.
type FoundMessage struct {
	Scope    string `json:"scope"`
	ThreadID string `json:"threadId"`
	// RunID is the run that brought the text first, by an event or in its input.
	RunID     string `json:"runId"`
	MessageID string `json:"messageId,omitempty"`
	Role      string `json:"role"`
	// Seq and SaidAt are those of the event with which the message began, or of the first event of the run if its input brought it.
	Seq    int64     `json:"seq"`
	SaidAt time.Time `json:"saidAt"`
	// Rank is how well it matches, compared with others of the same query.
	Rank float32 `json:"rank"`
	// Snippet has the parts of the text that match, in pieces.
	Snippet []SnippetPart `json:"snippet"`
}

// SnippetPart is a piece of a snippet.
type SnippetPart struct {
	Text string `json:"text"`
	// IsMatch: the piece is a word that was searched.
	IsMatch bool `json:"isMatch,omitzero"`
}

// Search returns the messages whose texts match a query, the best first: words, "words in order", or, -not. It searches what users,
// assistants and tools said in all branches, as of the last call of the job that keeps the facts (agui.project).
//
// Errors: ErrSearchOff (see EnableSearch), ErrInvalidArgument (not a cursor), ErrLimitExceeded. In a cluster an *UnansweredError comes with
// the messages of the nodes that answered; later pages do not have the others.
func (s *Store) Search(ctx context.Context, query string, options SearchOptions) (FoundPage, error) {
	mark := rand.Text() // no text contains it
	begin, end := "\x02"+mark, "\x03"+mark
	parameters := db.SearchParams{
		Query: query, Role: orNull(options.Role), Since: timeOrNull(options.Since), Cursor: orNull(options.Cursor),
		MaxRows: pageSize(options.Limit, 20), Marks: []string{begin, end},
	}
	if !options.AllScopes {
		parameters.Scope = &s.scope
	}
	merged, err := gatherPage(ctx, s, foundOrder, int(parameters.MaxRows), func(ctx context.Context, on part) ([]db.SearchRow, error) {
		return on.Search(ctx, parameters)
	})
	page := FoundPage{Messages: make([]FoundMessage, len(merged.items)), Cursor: merged.next}
	for i, row := range merged.items {
		if row.SearchedTo.After(page.SearchedTo) { // of the node that was cut first
			page.SearchedTo = row.SearchedTo
		}
		page.Messages[i] = FoundMessage{
			Scope: row.Scope, ThreadID: row.ThreadID, RunID: row.RunID, MessageID: row.MessageID, Role: row.Role, Seq: row.Seq, SaidAt: row.SaidAt, Rank: row.Rank,
			Snippet: snippetParts(row.Snippet, begin, end),
		}
	}
	return page, err
}

var foundOrder = listOrder[db.SearchRow]{
	cursorOf: func(row db.SearchRow) string { return row.Cursor },
	keyOf:    func(row db.SearchRow) any { return row.Cursor },
	compare:  compareFound,
}

// snippetParts splits a snippet at its marks.
func snippetParts(snippet, begin, end string) (parts []SnippetPart) {
	for i, piece := range strings.Split(snippet, begin) {
		match, rest, isMarked := strings.Cut(piece, end)
		if i == 0 || !isMarked {
			match, rest = "", piece
		}
		for _, part := range []SnippetPart{{match, true}, {rest, false}} {
			if part.Text != "" {
				parts = append(parts, part)
			}
		}
	}
	return parts
}

// EnableSearch turns Search on for all scopes, or changes its language: a text search configuration of PostgreSQL, such as "english"
// ("simple": words as they are). The next calls of the job that keeps the facts index the texts of all messages. The role must be a
// maintainer.
//
// Errors: ErrInvalidArgument (unknown language), ErrPermissionDenied. In a cluster it is turned on on all nodes; after an *UnansweredError,
// repeat the call.
func (s *Store) EnableSearch(ctx context.Context, language string) error {
	return s.backend.each(ctx, s.caller, func(ctx context.Context, on part) error { return on.EnableSearch(ctx, language) })
}

// DisableSearch turns Search off and removes what it needs, in a cluster on all nodes. It reports whether it was on. After an
// *UnansweredError, repeat the call.
func (s *Store) DisableSearch(ctx context.Context) (wasOn bool, err error) {
	answers, err := gather(ctx, s, func(ctx context.Context, on part) (bool, error) { return on.DisableSearch(ctx) })
	return slices.Contains(answers, true), err
}
