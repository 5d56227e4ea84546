package explorer

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/server/access"
	"github.com/pgagui/pgagui/server/face"
	"github.com/pgagui/pgagui/server/problem"
)

// messagesPerPage is how many messages a page of a conversation shows.
const messagesPerPage = 200

func milliseconds(count int64) time.Duration { return time.Duration(count) * time.Millisecond }

// threadHead is what all pages about a thread begin with.
type threadHead struct {
	pgagui.Thread
	Page string // conversation, time, log, times or compare
	// Run is the run that the page is about.
	Run       pgagui.Run
	RunStatus pgagui.Status
	IsHead    bool
	Seq       int64 // 0: the end of the run
	Why       string
	CanStop   bool
}

// Duration is how long the run took so far.
func (h threadHead) Duration() string {
	end := h.Run.EndedAt
	if end.IsZero() {
		end = time.Now()
	}
	return durationText(end.Sub(h.Run.StartedAt))
}

// rowsOfTree is how many rows of a tree a page shows.
const rowsOfTree = 1000

// mostOpen is how many stretches of a tree can be open at a time.
const mostOpen = 50

// tree is what a page shows of the tree of runs.
type tree struct {
	Rows     []treeRow
	Runs     int
	Branches int
	// Above and Below are how many runs are above and below the rows; AboveLink and BelowLink lead to the
	// rows next to them.
	Above, Below         int
	AboveLink, BelowLink string
	// Open is the parameter that says which stretches are not folded.
	Open  string
	place string // the parameter that says which rows these are
	// seq and before are the place in the conversation that the page shows.
	seq    int64
	before string

	page, thread, selected string
}

// Link leads to a run.
func (t tree) Link(run string) string {
	return link(t.page, "id", t.thread, "run", run, "open", t.Open)
}

// Unfold leads to the same page with a stretch of the tree open.
func (t tree) Unfold(number int) string {
	return t.same(strings.TrimPrefix(t.Open+"."+strconv.Itoa(number), "."), t.place) + "#tree-" + strconv.Itoa(number)
}

// same leads to the same page with other rows of the tree.
func (t tree) same(open, below string) string {
	return link(t.page, "id", t.thread, "run", t.selected, "seq", t.seq, "before", t.before, "open", open, "below", below)
}

// show takes the rows that the page shows: those below a run, by its number, or at the top; else those where the selected run is.
func (t *tree) show(rows []treeRow, below string) {
	begin := 0
	if number, err := strconv.Atoi(below); err == nil {
		begin = 1 + slices.IndexFunc(rows, func(row treeRow) bool { return row.Number == number })
	} else if at := slices.IndexFunc(rows, func(row treeRow) bool { return row.IsSelected }); below == "" && at >= rowsOfTree {
		begin = at - rowsOfTree/2
	}
	end := min(begin+rowsOfTree, len(rows))
	placeOf := func(first int) string {
		if first <= 0 {
			return "top"
		}
		return strconv.Itoa(rows[first-1].Number)
	}
	t.Rows, t.place = rows[begin:end], placeOf(begin)
	runsOf := func(rows []treeRow) (runs int) {
		for _, row := range rows {
			runs += max(1, row.Folded)
		}
		return runs
	}
	t.Above, t.AboveLink = runsOf(rows[:begin]), t.same(t.Open, placeOf(begin-rowsOfTree))
	t.Below, t.BelowLink = runsOf(rows[end:]), t.same(t.Open, placeOf(end))
}

type threadPage struct {
	Head         threadHead
	Tree         tree
	Conversation conversation
	Follow       string // where events of a running thread come from
}

// readThread reads what all pages about a thread show: the thread, its runs, and which is meant.
func (q *request) readThread(page string) (head threadHead, runs []pgagui.Run, err error) {
	id, err := q.required("id")
	if err != nil {
		return head, nil, err
	}
	seq, err := q.seq("seq")
	if err != nil {
		return head, nil, err
	}
	group, ctx := errgroup.WithContext(q.Context())
	var thread pgagui.Thread
	group.Go(func() (err error) {
		thread, err = q.store.Thread(ctx, id)
		return err
	})
	group.Go(func() (err error) {
		if isOfOneRun(page) {
			runs, err = q.readRun(ctx, pgagui.RunRef{ThreadID: id, RunID: q.text("run")})
		} else {
			runs, err = q.store.Runs(ctx, id)
		}
		return err
	})
	if err := group.Wait(); err != nil {
		return head, nil, err
	}
	head = threadHead{Thread: thread, Page: page, Seq: seq}
	wanted := cmp.Or(q.text("run"), thread.HeadRunID)
	if at := slices.IndexFunc(runs, func(run pgagui.Run) bool { return run.ID == wanted }); at >= 0 {
		head.Run = runs[at]
	} else if q.text("run") != "" {
		return head, nil, problem.Errorf(http.StatusNotFound, "thread %.200q has no run %.200q", id, wanted)
	} else if page != "conversation" {
		return head, nil, problem.Errorf(http.StatusNotFound, "thread %.200q has no runs yet", id)
	} else {
		return head, runs, nil
	}
	if last := head.Run.LastSeq; seq != 0 && (seq < head.Run.FirstSeq || last != 0 && seq > last) {
		return head, nil, problem.Errorf(http.StatusNotFound, "event %d is not of run %.200q, which has the events %d to %d", seq, wanted, head.Run.FirstSeq, last)
	}
	head.IsHead, head.RunStatus = head.Run.ID == thread.HeadRunID, head.Run.Status
	if status := head.Run.Status; status == pgagui.Failed || status == pgagui.CutOff || status == pgagui.Cancelled {
		head.Why = why(head.Run.RunEnd)
	}
	head.CanStop = head.Run.Status == pgagui.Running && q.identity.Can(access.Stop)
	return head, runs, nil
}

// isOfOneRun reports whether a page shows nothing of other runs, so that it need not read a large tree.
func isOfOneRun(page string) bool { return page == "time" || page == "times" || page == "continue" }

// readRun returns a run alone, without its number.
func (q *request) readRun(ctx context.Context, run pgagui.RunRef) ([]pgagui.Run, error) {
	status, err := q.store.Status(ctx, run)
	if err != nil {
		return nil, err
	}
	return []pgagui.Run{{
		ID: status.RunID, ParentRunID: status.ParentRunID, Status: status.Status, FirstSeq: status.FirstSeq, LastSeq: status.LastSeq,
		StartedAt: status.StartedAt, EndedAt: status.EndedAt, RunEnd: status.RunEnd,
	}}, nil
}

// treeOf lays out the tree for a page.
func (q *request) treeOf(head threadHead, runs []pgagui.Run) tree {
	open := map[int]bool{}
	var kept []string // what links repeat
	for text := range strings.SplitSeq(q.text("open"), ".") {
		number, err := strconv.Atoi(text)
		if err == nil && !open[number] && 0 <= number && number <= len(runs) && len(kept) < mostOpen {
			open[number] = true
			kept = append(kept, strconv.Itoa(number))
		}
	}
	of := tree{
		Runs: len(runs), Branches: head.Branches, Open: strings.Join(kept, "."), seq: head.Seq, before: q.text("before"),
		page: lastPart(q.URL.Path), thread: head.ID, selected: head.Run.ID,
	}
	of.show(drawTree(runs, head.HeadRunID, head.Run.ID, open), q.text("below"))
	return of
}

// showThread shows the conversation of a thread at a run, beside the tree of its runs.
func (h *Handler) showThread(q *request) error {
	id, err := q.required("id")
	if err != nil {
		return err
	}
	seq, err := q.seq("seq")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(q.Context())
	defer cancel()
	var shown said
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		shown, err = q.readSaid(ctx, id, pgagui.At{RunID: q.text("run"), Seq: seq}, q.text("before"))
		return err
	})
	head, runs, err := q.readThread("conversation")
	if err != nil {
		return err
	}
	body := threadPage{Head: head}
	if err := group.Wait(); err != nil && head.Run.ID != "" {
		return err
	}
	if head.Run.ID != "" {
		body.Tree = q.treeOf(head, runs)
		if body.Conversation, err = q.layConversation(shown, head, runs); err != nil {
			return err
		}
		if seq == 0 && q.text("before") == "" && (head.IsHead || head.Run.Status == pgagui.Running) {
			body.Follow = link("events", "id", head.ID, "after", shown.lastSeq)
		}
	}
	return q.write("thread", cmp.Or(head.Title, head.ID), body)
}

// readSaid reads the last messages at a point of a thread, or those before a cursor.
func (q *request) readSaid(ctx context.Context, thread string, at pgagui.At, before string) (shown said, err error) {
	shown.thread = thread
	// First, so that what comes while the page is read is an event to follow.
	status, err := q.store.Status(ctx, pgagui.RunRef{ThreadID: thread, RunID: at.RunID})
	if err != nil {
		return shown, err
	}
	shown.lastSeq, shown.isRunning = status.LastSeq, status.Status == pgagui.Running || at.Seq != 0
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		shown.placed, err = q.store.LastMessages(ctx, thread, pgagui.LastMessagesOptions{At: at, Cursor: before, Limit: messagesPerPage})
		return err
	})
	if before == "" && (at.Seq != 0 || status.Status != pgagui.Finished) { // a run that finished leaves none open
		group.Go(func() error {
			interrupts, err := q.store.Interrupts(ctx, thread, at)
			for _, interrupt := range interrupts {
				shown.interrupts = append(shown.interrupts, interrupt.JSON)
			}
			return err
		})
	}
	err = group.Wait()
	for _, message := range shown.placed {
		shown.messages = append(shown.messages, message.JSON)
	}
	if len(shown.placed) > 0 {
		shown.first = shown.placed[0].Position
	}
	return shown, err
}

// layConversation lays out messages with what belongs to them.
func (q *request) layConversation(shown said, head threadHead, runs []pgagui.Run) (of conversation, err error) {
	if shown.first > 1 {
		of.Earlier = shown.first - 1
		of.EarlierLink = link("thread", "id", head.ID, "run", q.text("run"), "seq", head.Seq, "before", shown.placed[0].Cursor)
	}
	at := pgagui.At{RunID: head.Run.ID, Seq: head.Seq}
	if shown.subagents, err = q.readSubagents(q.Context(), head, at, shown.messages); err != nil {
		return of, err
	}
	of.Parts = partsOf(shown)
	if err := q.addAttachments(of.Parts, head, at, shown.messages); err != nil {
		return of, err
	}
	if of.Parts, err = q.withRuns(q.Context(), of.Parts, head, runs); err != nil {
		return of, err
	}
	if q.text("before") == "" && head.Seq == 0 && head.Why != "" {
		end := endOf(head.Run)
		if err := q.addAnswer(end, head); err != nil {
			return of, err
		}
		of.Parts = append(of.Parts, part{Key: "error", End: end})
	}
	return of, nil
}

// addAnswer adds what the agent answered in place of events.
func (q *request) addAnswer(end *runEnd, head threadHead) (err error) {
	if head.Run.Status == pgagui.Failed && q.identity.Can(access.Diagnose) {
		end.Answered, err = q.store.AgentError(q.Context(), pgagui.RunRef{ThreadID: head.ID, RunID: head.Run.ID})
	}
	if end.Answered != nil {
		end.Body, _ = cut(pretty([]byte(end.Answered.Text())))
	}
	return err
}

func endOf(run pgagui.Run) *runEnd {
	title := map[pgagui.Status]string{pgagui.Failed: "The run failed", pgagui.CutOff: "The run was cut off", pgagui.Cancelled: "The run was cancelled"}[run.Status]
	return &runEnd{Run: run, Code: run.ErrorCode, Text: cmp.Or(run.ErrorMessage, run.CutOffReason, run.StopReason), Title: title}
}

// has reports whether one of some messages has a text.
func has(messages []json.RawMessage, text string) bool {
	return slices.ContainsFunc(messages, func(message json.RawMessage) bool { return bytes.Contains(message, []byte(text)) })
}

// readSubagents returns the subagents of a conversation by id, if one says something in its messages.
func (q *request) readSubagents(ctx context.Context, head threadHead, at pgagui.At, messages []json.RawMessage) (map[string]pgagui.Subagent, error) {
	if !has(messages, `"subagentRunId"`) {
		return nil, nil
	}
	subagents, err := q.store.Subagents(ctx, head.ID, pgagui.SubagentsOptions{At: at})
	byID := make(map[string]pgagui.Subagent, len(subagents))
	for _, subagent := range subagents {
		byID[subagent.ID] = subagent
	}
	return byID, err
}

// addAttachments adds what messages hold as data.
func (q *request) addAttachments(parts []part, head threadHead, at pgagui.At, messages []json.RawMessage) error {
	if !slices.ContainsFunc(messages, func(message json.RawMessage) bool {
		return bytes.Contains(message, []byte(`"mimeType"`)) || bytes.Contains(message, []byte(`"data"`))
	}) {
		return nil
	}
	attached, err := q.store.Attachments(q.Context(), head.ID, at)
	if err != nil {
		return err
	}
	for _, one := range attached {
		for i := range parts {
			if parts[i].ID == one.MessageID && one.MessageID != "" && parts[i].Kind == "message" {
				parts[i].Attachments = append(parts[i].Attachments, attachment{
					MessageAttachment: one, Size: bytesText(one.Bytes), IsImage: isRaster(one.MIMEType),
					Link: link("attachment", "id", head.ID, "run", head.Run.ID, "seq", head.Seq, "n", one.N),
				})
				break
			}
		}
	}
	return nil
}

// isRaster reports whether a browser may show data of a type as an image.
func isRaster(mediaType string) bool {
	return slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"}, strings.ToLower(mediaType))
}

// showAttachment sends the data of an attachment: an image to show, anything else to save.
func (h *Handler) showAttachment(q *request) error {
	id, err := q.required("id")
	if err != nil {
		return err
	}
	seq, err := q.seq("seq")
	if err != nil {
		return err
	}
	n, err := q.seq("n")
	if err != nil {
		return err
	}
	found, data, err := q.store.AttachmentData(q.Context(), id, int(n), pgagui.At{RunID: q.text("run"), Seq: seq})
	if err != nil {
		return err
	}
	header := q.w.Header()
	header.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	if isRaster(found.MIMEType) {
		header.Set("Content-Type", strings.ToLower(found.MIMEType))
		header.Set("Content-Disposition", "inline")
	} else {
		header.Set("Content-Type", "application/octet-stream")
		header.Set("Content-Disposition", face.Disposition("attachment", cmp.Or(found.Filename, "attachment")))
	}
	header.Set("Content-Length", strconv.Itoa(len(data)))
	return q.send(http.StatusOK, data)
}
