// A receiver of webhooks (docs/guides/webhooks.md): it verifies each request with the secret in WEBHOOK_SECRET, and prints it.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"
)

func main() {
	http.HandleFunc("POST /hooks", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err == nil {
			err = verify(os.Getenv("WEBHOOK_SECRET"), r.Header, body, time.Now())
		}
		var event struct {
			Type string
			Data struct{ Scope, ThreadID, RunID, Status string }
		}
		if err == nil {
			err = json.Unmarshal(body, &event)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		// A program of yours stores the event here, under its webhook-id, before it answers.
		fmt.Println(event.Type, event.Data.ThreadID, event.Data.RunID, event.Data.Status)
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:18723", nil))
}
