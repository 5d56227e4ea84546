package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/format"
	"strings"

	"github.com/pgagui/pgagui/protocol"
)

// ofErrors makes a file of the table of errors.
func ofErrors(write func(w *bytes.Buffer, t *protocol.ErrorTable)) func(*protocol.List) ([]byte, error) {
	return func(*protocol.List) ([]byte, error) {
		w := bytes.NewBufferString("// " + strings.ReplaceAll(notice, "events.json", "errors.json") + "\n\n")
		write(w, protocol.Errors())
		if !bytes.Contains(w.Bytes(), []byte("\npackage ")) {
			return w.Bytes(), nil
		}
		return format.Source(w.Bytes())
	}
}

// refusals writes the table of package refusal.
func refusals(w *bytes.Buffer, t *protocol.ErrorTable) {
	fmt.Fprint(w, "package refusal\n\nvar (\n")
	var states strings.Builder
	for _, r := range t.Refusals {
		fmt.Fprintf(w, "%s = &Kind{State: %q, Family: %s, Status: %d, Exit: %d, ForOperators: %t, Text: %q, SQL: %q, HTTP: %q, CLI: %q}\n",
			r.Name, append(r.States, "")[0], cmp.Or(r.Family, "nil"), r.Status, r.Exit, r.ForOperators, r.Text, r.SQL, r.HTTP, r.CLI)
		for _, state := range r.States {
			fmt.Fprintf(&states, "%q: %s,\n", state, r.Name)
		}
	}
	fmt.Fprintf(w, ")\n\n// OfState are the kinds by SQLSTATE.\nvar OfState = map[string]*Kind{\n%s}\n\nvar states = []State{\n", &states)
	for _, s := range t.States {
		fmt.Fprintf(w, "{%q, %q, %s, %d, %q},\n", s.Code, s.Message, inGo(cmp.Or(s.Retry, "permanent")), s.Exit, s.CLI)
	}
	fmt.Fprint(w, "}\n")
}

// publicErrors writes the Err variables.
func publicErrors(w *bytes.Buffer, t *protocol.ErrorTable) {
	fmt.Fprint(w, `package pgagui

import "github.com/pgagui/pgagui/internal/refusal"

// The reasons why the database refuses a call, with their SQLSTATEs: of class UI those of the schema, the others PostgreSQL's own.
// Test for them with errors.Is. ErrNotFound is a family: it is found in all that say that something does not exist.
var (
`)
	for _, r := range t.Refusals {
		fmt.Fprintf(w, "Err%s error = refusal.%[1]s // %s\n", r.Name, cmp.Or(strings.Join(r.States, ", "), "no SQLSTATE"))
	}
	fmt.Fprint(w, ")\n")
}

// grpcCodes writes the codes of gRPC.
func grpcCodes(w *bytes.Buffer, t *protocol.ErrorTable) {
	fmt.Fprint(w, "package ambient\n\nimport \"connectrpc.com/connect\"\n\n// codeOf are the codes of gRPC for the statuses of HTTP.\nvar codeOf = map[int]connect.Code{\n")
	for _, s := range t.Statuses {
		fmt.Fprintf(w, "%d: connect.Code%s,\n", s.Status, s.GRPC)
	}
	fmt.Fprint(w, "}\n")
}

// codesInTypeScript writes the SQLSTATEs for the npm packages.
func codesInTypeScript(w *bytes.Buffer, t *protocol.ErrorTable) {
	fmt.Fprint(w, "// The SQLSTATEs of the errors that have a name in Go (Err…).\n")
	for _, r := range t.Refusals {
		if r.States != nil {
			fmt.Fprintf(w, "export const %s = %q;\n", strings.ToLower(r.Name[:1])+r.Name[1:], r.States[0])
		}
	}
}

// retriesInTypeScript writes them, and what a retry may cure, for the package that talks to the database.
func retriesInTypeScript(w *bytes.Buffer, t *protocol.ErrorTable) {
	codesInTypeScript(w, t)
	fmt.Fprint(w, `
/** What the code and the message of an error begin with that a retry may cure. */
export const retries: readonly (readonly [code: string, message: string, retry: "uncertain" | "transient"])[] = [
`)
	for _, s := range t.States {
		if s.Retry != "" {
			fmt.Fprintf(w, "  [%q, %q, %q],\n", s.Code, s.Message, s.Retry)
		}
	}
	fmt.Fprint(w, "];\n")
}

// errorPage writes docs/reference/errors.md.
func errorPage(*protocol.List) ([]byte, error) {
	var page bytes.Buffer
	page.WriteString("# SQLSTATEs\n\nEach refusal has an SQLSTATE, an error in Go, and a status of HTTP, from which the code of gRPC follows.\n" +
		"[errors.md](../errors.md) has what to do about those that need more than a line.\n\n" +
		"This page is written from [protocol/errors.json](../../protocol/README.md#errors): go run ./protocol/generate\n\n" +
		"| SQLSTATE | Go | HTTP | cause | remedy |\n|---|---|---|---|---|\n")
	for _, r := range protocol.Errors().Refusals {
		if r.States != nil {
			fmt.Fprintf(&page, "| %s | Err%s | %d | %s | %s |\n", strings.Join(r.States, ", "), r.Name, r.Status, r.Cause, r.Remedy)
		}
	}
	return page.Bytes(), nil
}
