package server

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pgagui/pgagui"
)

// metrics are the metrics of a server, for Prometheus.
type metrics struct {
	runs        *prometheus.CounterVec // by agent and outcome
	running     *prometheus.GaugeVec   // by agent
	events      *prometheus.CounterVec // by agent
	streams     prometheus.Gauge
	aborted     prometheus.Counter
	rewound     prometheus.Counter
	repeated    prometheus.Counter
	unplaced    prometheus.Counter
	replacedIDs prometheus.Counter
	filtered    *prometheus.CounterVec // by what the filter did
	refused     *prometheus.CounterVec // by status
	requests    *prometheus.HistogramVec
}

func newMetrics(registry prometheus.Registerer, recorder *pgagui.Recorder) (*metrics, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "pgagui_server_" + name, Help: help})
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pgagui_server_" + name, Help: help}, labels)
	}
	m := &metrics{
		runs: counters("runs_total", "Runs that this process recorded, by outcome: finished, failed, stopped, "+
			"the code of the server's RUN_ERROR, or unrecorded.", "agent", "outcome"),
		running: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "pgagui_server_runs_in_progress", Help: "Runs that this process records now.",
		}, []string{"agent"}),
		events: counters("events_total", "Events that the recorder took from agents.", "agent"),
		streams: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "pgagui_server_streams", Help: "Streams that are open now.",
		}),
		aborted:     counter("streams_aborted_total", "Streams that the server aborted: slow clients, errors, shutdown."),
		rewound:     counter("resumed_from_history_total", "Clients that received the history, because the log does not have the event that they resumed behind."),
		repeated:    counter("runs_repeated_total", "Requests to run that were a repetition of an earlier one."),
		unplaced:    counter("runs_unplaced_total", "Runs that continued from the head although the client's messages were trimmed or reordered."),
		replacedIDs: counter("ids_replaced_total", "Thread ids and run ids of agents that were replaced by those of the client."),
		filtered: counters("stream_events_changed_total", "Events that the filter of streams added, changed or left out, "+
			"because the official client would refuse them.", "change"),
		refused: counters("refused_total", "Requests that access control refused.", "status"),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "pgagui_server_request_seconds", Help: "Time to the first byte of the answer.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"route", "status"}),
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
	for _, collector := range []prometheus.Collector{
		m.runs, m.running, m.events, m.streams, m.aborted, m.rewound, m.repeated, m.unplaced, m.replacedIDs, m.filtered, m.refused,
		m.requests, buffered, retries, retrying,
	} {
		if err := registry.Register(collector); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// filter counts what the filter of a stream has changed.
func (m *metrics) filter(sent *stream) {
	if sent.filter == nil {
		return
	}
	stats := sent.filter.Stats()
	for change, n := range map[string]int{
		"added": stats.Added, "changed": stats.Changed, "malformed": stats.Malformed, "misplaced": stats.Misplaced,
	} {
		m.filtered.WithLabelValues(change).Add(float64(n))
	}
}

// measured measures requests.
func (s *Server) measured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin := time.Now()
		next.ServeHTTP(&firstByte{ResponseWriter: w, observe: func(status int) {
			s.metrics.requests.WithLabelValues(r.Pattern, http.StatusText(status)).Observe(time.Since(begin).Seconds())
		}}, r)
	})
}

// firstByte is a ResponseWriter that reports when the answer begins.
type firstByte struct {
	http.ResponseWriter
	observe func(status int)
	isBegun bool
}

func (w *firstByte) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *firstByte) WriteHeader(status int) {
	if !w.isBegun && status >= http.StatusOK {
		w.isBegun = true
		w.observe(status)
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *firstByte) Write(text []byte) (int, error) {
	if !w.isBegun {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(text)
}
