package rest

import (
	"net/http"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/server/face"
)

// getUsage returns the tokens that runs of a thread used.
func (s handler) getUsage(w http.ResponseWriter, r *http.Request) error {
	q := face.QueryOf(r)
	options := pgagui.UsageOptions{RunID: q.Text("run"), NoLineage: !q.Is("lineage", true), WholeThread: q.Is("whole_thread", false)}
	if err := q.Check(); err != nil {
		return err
	}
	usage, err := s.Tenant(r.Context()).Usage(r.Context(), r.PathValue("thread"), options)
	if err != nil {
		return err
	}
	return face.Answer(w, usage)
}

// getSubagents returns the tree of the subagents of a conversation.
func (s handler) getSubagents(w http.ResponseWriter, r *http.Request) error {
	q := face.QueryOf(r)
	options := pgagui.SubagentsOptions{At: q.At(""), NoLineage: !q.Is("lineage", true)}
	if err := q.Check(); err != nil {
		return err
	}
	subagents, err := s.Tenant(r.Context()).Subagents(r.Context(), r.PathValue("thread"), options)
	if err != nil {
		return err
	}
	return answerList(s, w, r, "subagents", subagents)
}
