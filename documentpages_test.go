package pgagui_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/must"
)

// Pages of documents, whatever bound they have, are the whole list in its order, and have a document at least.
func TestPagesOfDocumentsAreTheList(t *testing.T) {
	t.Parallel()
	store, _ := newStore(t)
	ctx := t.Context()
	for n, parent := range []string{"", "c0", "c1", "c0", "c2"} {
		document := fmt.Sprintf(`"%s"`, strings.Repeat("é", n))
		mustCheckpoint(t, store, "t", pgagui.Checkpoint{ID: fmt.Sprint("c", n), ParentID: parent, JSON: json.RawMessage(document)})
		mustSave(t, store, "t", "", fmt.Sprint("key-", n), document)
		mustSave(t, store, "t", "", "key", document)
	}
	key := pgagui.SessionKey{ThreadID: "t", Key: "key"}
	must.Have(store.Sessions().Remove(ctx, key, pgagui.SaveOptions{Overwrite: true}))(t)
	mustSave(t, store, "t", "", "key", `{}`)

	type item struct {
		name   string // what the list is about
		cursor string // of the next page
		bytes  int
	}
	states := func(all []pgagui.SessionState) (items []item) {
		for _, state := range all {
			items = append(items, item{fmt.Sprint(state.Key, " ", state.Version, " ", string(state.JSON)), fmt.Sprint(state.Version), len(state.JSON)})
		}
		return items
	}
	checkpoints := func(all []pgagui.Checkpoint) (items []item) {
		for _, checkpoint := range all {
			items = append(items, item{fmt.Sprint(checkpoint.ID, " ", string(checkpoint.JSON)), fmt.Sprint(checkpoint.Number), len(checkpoint.JSON)})
		}
		return items
	}
	number := func(cursor string) (n int64) {
		_, _ = fmt.Sscan(cursor, &n)
		return n
	}
	for what, test := range map[string]struct {
		want string
		page func(cursor string, bytes int) ([]item, bool, error)
	}{
		"session state": {"key 7 {}, key-0 1 \"\", key-1 1 \"é\", key-2 1 \"éé\", key-3 1 \"ééé\", key-4 1 \"éééé\"", func(cursor string, bytes int) ([]item, bool, error) {
			page, hasMore, err := store.Sessions().ListPage(ctx, pgagui.SessionRef{ThreadID: "t"}, cursor, bytes)
			items := states(page)
			for i := range items {
				items[i].cursor = page[i].Key
			}
			return items, hasMore, err
		}},
		"versions": {"key 7 {}, key 6 , key 5 \"éééé\", key 4 \"ééé\", key 3 \"éé\", key 2 \"é\", key 1 \"\"", func(cursor string, bytes int) ([]item, bool, error) {
			page, hasMore, err := store.Sessions().VersionsPage(ctx, key, pgagui.VersionsOptions{}, number(cursor), bytes)
			return states(page), hasMore, err
		}},
		"checkpoints": {"c0 \"\", c1 \"é\", c2 \"éé\", c3 \"ééé\", c4 \"éééé\"", func(cursor string, bytes int) ([]item, bool, error) {
			page, hasMore, err := store.Checkpoints().ListPage(ctx, "t", pgagui.CheckpointsOptions{}, number(cursor), bytes)
			return checkpoints(page), hasMore, err
		}},
		"lineage": {"c0 \"\", c1 \"é\", c2 \"éé\", c4 \"éééé\"", func(cursor string, bytes int) ([]item, bool, error) {
			page, hasMore, err := store.Checkpoints().LineagePage(ctx, "t", pgagui.CheckpointRef{ID: "c4"}, number(cursor), bytes)
			return checkpoints(page), hasMore, err
		}},
	} {
		for _, bound := range []int{0, 1, 7, 12, 1000} {
			var read []string
			for cursor, hasMore := "", true; hasMore; {
				page, more, err := test.page(cursor, bound)
				if err != nil || len(page) == 0 {
					t.Fatalf("%s behind %q: a page of %d documents, error %v", what, cursor, len(page), err)
				}
				bytes := 0
				for _, item := range page {
					read, bytes = append(read, item.name), bytes+item.bytes
				}
				if bound > 0 && len(page) > 1 && bytes > bound {
					t.Errorf("%s behind %q: %d bytes, want %d at most", what, cursor, bytes, bound)
				}
				cursor, hasMore = page[len(page)-1].cursor, more
			}
			if got := strings.Join(read, ", "); got != test.want {
				t.Errorf("%s in pages of %d bytes:\n%s\nwant\n%s", what, bound, got, test.want)
			}
		}
	}
}
