package transcript_test

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/pgagui/pgagui/transcript"
)

func Example() {
	writer := transcript.New(transcript.Options{Width: 80})
	writer.Register("SCRAPE", func(content json.RawMessage) ([]transcript.Line, error) {
		var scrape struct {
			URL   string
			Pages int
		}
		if err := json.Unmarshal(content, &scrape); err != nil {
			return nil, err
		}
		return []transcript.Line{{Mark: transcript.Active, Text: scrape.URL, Note: fmt.Sprint(scrape.Pages, " pages")}}, nil
	})
	_ = writer.Write(os.Stdout, transcript.Conversation{Messages: []json.RawMessage{
		json.RawMessage(`{"id": "1", "role": "user", "content": "What do people say about it?"}`),
		json.RawMessage(`{"id": "2", "role": "assistant", "content": "I will search the internet for relevant information."}`),
		json.RawMessage(`{"id": "3", "role": "activity", "activityType": "PLAN", "content": {"tasks": ["✓ check reddit", "search X.com"]}}`),
		json.RawMessage(`{"id": "4", "role": "activity", "activityType": "SCRAPE", "content": {"url": "https://x.com", "pages": 12}}`),
	}})
	// Output:
	// user
	//   What do people say about it?
	//
	// assistant
	//   I will search the internet for relevant information.
	//
	//   PLAN
	//   │ ✓ check reddit
	//   │ ◦ search X.com
	//
	//   SCRAPE
	//   │ ▸ https://x.com  12 pages
}
