package face

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the metrics of requests and of the streams to clients, for Prometheus.
type metrics struct {
	aborted  prometheus.Counter
	refused  *prometheus.CounterVec // by status
	requests *prometheus.HistogramVec
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		aborted: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "pgagui_server_streams_aborted_total", Help: "Streams that the server aborted: slow clients, errors, shutdown.",
		}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pgagui_server_refused_total", Help: "Requests that access control refused.",
		}, []string{"status"}),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "pgagui_server_request_seconds", Help: "Time to the first byte of the answer.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"route", "status"}),
	}
	if registry == nil {
		return m, nil
	}
	for _, collector := range []prometheus.Collector{m.aborted, m.refused, m.requests} {
		if err := registry.Register(collector); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// measured measures requests.
func (s *HTTP) measured(next http.Handler) http.Handler {
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
