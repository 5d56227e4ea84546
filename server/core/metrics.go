package core

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pgagui/pgagui"
	"github.com/pgagui/pgagui/internal/panics"
	"github.com/pgagui/pgagui/server/door"
)

// metrics are the metrics of the runs and their streams, for Prometheus.
type metrics struct {
	runs        *prometheus.CounterVec // by agent and outcome
	running     *prometheus.GaugeVec   // by agent
	events      *prometheus.CounterVec // by agent
	streams     prometheus.Gauge
	queued      prometheus.Gauge
	rewound     prometheus.Counter
	repeated    prometheus.Counter
	unplaced    prometheus.Counter
	replacedIDs prometheus.Counter
	filtered    *prometheus.CounterVec // by what the filter did
}

func newMetrics(registry prometheus.Registerer, recorder *pgagui.Recorder, memory *door.Budget) (*metrics, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "pgagui_server_" + name, Help: help})
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pgagui_server_" + name, Help: help}, labels)
	}
	m := &metrics{
		runs: counters("runs_total", "Runs that this process recorded, by outcome: finished, interrupted, "+
			"cancelled, failed, the code of the server's RUN_ERROR, or unrecorded.", "agent", "outcome"),
		running: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "pgagui_server_runs_in_progress", Help: "Runs that this process records now.",
		}, []string{"agent"}),
		events: counters("events_total", "Events that the recorder took from agents.", "agent"),
		streams: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "pgagui_server_streams", Help: "Streams that are open now.",
		}),
		queued: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "pgagui_server_requests_queued", Help: "Requests that wait for another run of their thread.",
		}),
		rewound:     counter("resumed_from_history_total", "Clients that received the history, because the log does not have the event that they resumed behind."),
		repeated:    counter("runs_repeated_total", "Requests to run that were a repetition of an earlier one."),
		unplaced:    counter("runs_unplaced_total", "Runs that continued from the head although the client's messages were trimmed or reordered."),
		replacedIDs: counter("ids_replaced_total", "Thread ids and run ids of agents that were replaced by those of the client."),
		filtered: counters("stream_events_changed_total", "Events that the filter of streams added, changed or left out, "+
			"because the official client would refuse them, or because they have no effect in the log (skipped).", "change"),
	}
	if registry == nil {
		return m, nil
	}
	buffered := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "pgagui_server_events_buffered", Help: "Events that are not stored yet.",
	}, func() float64 { return float64(recorder.Stats().Buffered) })
	retries := prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "pgagui_server_retries_total", Help: "Calls of the recorder that were retried.",
	}, func() float64 { return float64(recorder.Stats().Retries) })
	retrying := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "pgagui_server_retrying_seconds", Help: "How long the oldest call of the recorder has been retried. 0: none is.",
	}, func() float64 {
		if since := recorder.Stats().RetryingSince; !since.IsZero() {
			return time.Since(since).Seconds()
		}
		return 0
	})
	caught := prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "pgagui_server_panics_total", Help: "Panics of this process that ended one task; the log has their stacks.",
	}, func() float64 { return float64(panics.Caught()) })
	memoryLimit := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "pgagui_server_memory_limit_bytes", Help: "Memory for large requests, their copies, and large answers.",
	}, func() float64 { return float64(memory.Limit()) })
	memoryUsed := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "pgagui_server_memory_used_bytes", Help: "What is in use of that memory.",
	}, func() float64 { return float64(memory.Used()) })
	memoryRefused := prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "pgagui_server_memory_refused_total", Help: "Large requests and answers for which there was no memory.",
	}, func() float64 { return float64(memory.Refused()) })
	for _, collector := range []prometheus.Collector{
		m.runs, m.running, m.events, m.streams, m.queued, m.rewound, m.repeated, m.unplaced, m.replacedIDs, m.filtered,
		buffered, retries, retrying, caught, memoryLimit, memoryUsed, memoryRefused,
	} {
		if err := registry.Register(collector); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// filter counts what the filter of a stream has changed.
func (m *metrics) filter(sent *Stream) {
	if sent.filter == nil {
		return
	}
	stats := sent.filter.Stats()
	for change, n := range map[string]int{
		"added": stats.Added, "changed": stats.Changed, "malformed": stats.Malformed, "misplaced": stats.Misplaced, "skipped": stats.Skipped,
	} {
		m.filtered.WithLabelValues(change).Add(float64(n))
	}
}
