// Package timeline goes through a run event by event, forwards and backwards, and shows at each of
// them what the conversation was: messages, state, interrupts, and what was open. It is for screens
// with a slider.
//
// A Timeline reads the log of its run once, and folds it in memory (package compaction) from what the
// conversation was when the run began. It keeps a copy of the fold every 256 events, so a step back, or
// a jump, folds 256 events at most; a step forward folds one. A Cache keeps the timelines that were
// used last, within a number of bytes.
//
//	cache := timeline.NewCache(0)
//	line, err := cache.Open(ctx, store, pgagui.RunRef{ThreadID: "chat", RunID: "run-7"})
//	if err != nil {
//		return err
//	}
//	moment, err := line.At(ctx, line.FirstSeq())
//
// What a Moment shows equals what Store.Restore returns for the run at that seq.
package timeline
