// Package panics keeps a panic in one task from ending the process. What the server, the worker, the
// jobs and the recorder do in a goroutine of its own goes through it.
package panics

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
)

// Err is what a panic becomes.
var Err = errors.New("panic")

var caught atomic.Int64

// Caught is how many panics of this process became errors.
func Caught() int64 { return caught.Load() }

// Catch calls a function and turns a panic into an error, an Err that names the place. It logs the
// stack. If the logger is nil, that is slog.Default().
func Catch(logger *slog.Logger, call func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			caught.Add(1)
			err = fmt.Errorf("%w%s: %v", Err, place(), value)
			if logger == nil {
				logger = slog.Default()
			}
			logger.Error("pgagui: a panic became an error", "error", err, "stack", string(debug.Stack()))
		}
	}()
	return call()
}

// Task returns a function for a goroutine: it calls task, and failed if that panics. failed is nil if
// there is no more to do than to log it.
func Task(logger *slog.Logger, task func(), failed func(error)) func() {
	return func() {
		err := Catch(logger, func() error {
			task()
			return nil
		})
		if err != nil && failed != nil {
			failed(err)
		}
	}
}

// place says where the function that is being recovered panicked.
func place() string {
	callers := make([]uintptr, 32)
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers)])
	for {
		frame, more := frames.Next()
		if !strings.HasPrefix(frame.Function, "runtime.") {
			return fmt.Sprintf(" in %s (%s:%d)", frame.Function, frame.File[strings.LastIndexByte(frame.File, '/')+1:], frame.Line)
		}
		if !more {
			return ""
		}
	}
}
