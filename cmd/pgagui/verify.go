package main

import (
	"context"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"github.com/pgagui/pgagui"
)

func (p *program) verifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify [THREAD…]",
		Short: "Check log, tree and snapshots",
		Long: `Checks threads, without arguments all of the scope: that no seq is missing, that runs and batches fit together, and that every snapshot
is what folding the raw log gives. Each problem is a line; then the exit code is 1.`,
		RunE: func(command *cobra.Command, threads []string) error {
			return p.withStore(command.Context(), func(store *pgagui.Store) error {
				return p.verify(command.Context(), store, threads)
			})
		},
	}
}

type verified struct {
	Threads  int             `json:"threads"`
	Problems []threadProblem `json:"problems"`
}

type threadProblem struct {
	ThreadID string `json:"threadId"`
	pgagui.Problem
}

func (p *program) verify(ctx context.Context, store *pgagui.Store, threads []string) error {
	line := p.newProgress()
	defer line.clear()
	result := verified{Problems: []threadProblem{}}
	for threadID, err := range threadsToVerify(ctx, store, threads) {
		if err != nil {
			return err
		}
		problems, err := store.Verify(ctx, threadID)
		if err != nil {
			return err
		}
		result.Threads++
		for _, problem := range problems {
			result.Problems = append(result.Problems, threadProblem{ThreadID: threadID, Problem: problem})
			if p.json {
				continue
			}
			line.clear()
			if err := p.printProblem(threadID, problem); err != nil {
				return err
			}
		}
		line.show(func() string {
			return fmt.Sprintf("%s, %s", countText(result.Threads, "thread"), countText(len(result.Problems), "problem"))
		})
	}
	line.clear()
	var err error
	switch {
	case p.json:
		err = p.printJSON(result)
	case len(result.Problems) == 0:
		_, err = fmt.Fprintf(p.out, "%s, no problem\n", countText(result.Threads, "thread"))
	default:
		_, err = fmt.Fprintf(p.messages, "%s, %s\n", countText(result.Threads, "thread"), countText(len(result.Problems), "problem"))
	}
	if err == nil && len(result.Problems) > 0 {
		return errProblems
	}
	return err
}

// threadsToVerify yields the threads given, or those of the scope when none is.
func threadsToVerify(ctx context.Context, store *pgagui.Store, given []string) iter.Seq2[string, error] {
	if len(given) == 0 {
		return store.Threads(ctx)
	}
	return func(yield func(string, error) bool) {
		for _, threadID := range given {
			if !yield(threadID, nil) {
				return
			}
		}
	}
}

func (p *program) printProblem(threadID string, problem pgagui.Problem) error {
	where := "thread " + threadID
	if problem.RunID != "" {
		where += ", run " + problem.RunID
	}
	_, err := fmt.Fprintf(p.out, "%s: %s\n", where, oneLine(problem.Problem))
	return err
}
