// Package health answers the three questions of an operator's machinery over HTTP: is the process alive (/healthz), can
// it do its work (/readyz), and how is it doing (/metrics, in Prometheus' text format).
//
// No label bears a name out of the data: who may reach the endpoint learns no connector, topic or tenant. Per connector
// figures are in the SQL views.
package health

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"highwater/sql/store"
)

const (
	// answerWait bounds one question to the database.
	answerWait = 2 * time.Second
	// headerWait bounds how long a client may take to ask.
	headerWait = 5 * time.Second
	// stopWait bounds how long an answer in progress may take when the sidecar stops.
	stopWait = time.Second
)

// Metrics are the counters that runs add to. Make them with [NewMetrics].
type Metrics struct {
	registry *prometheus.Registry
	rows     *prometheus.CounterVec
	letters  prometheus.Counter
	runs     *prometheus.CounterVec
	chunks   prometheus.Histogram
}

// NewMetrics makes the counters in a registry of their own. gauges is asked at each scrape and may fail.
func NewMetrics(gauges func(context.Context) (store.Gauges, error)) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		rows:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: "highwater_rows_total", Help: "Rows sent to tables, by what the table did with them: written or duplicate."}, []string{"result"}),
		letters:  prometheus.NewCounter(prometheus.CounterOpts{Name: "highwater_dead_letters_total", Help: "Messages set aside as dead letters."}),
		runs:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: "highwater_runs_total", Help: "Runs that ended, by status and code."}, []string{"status", "code"}),
		chunks:   prometheus.NewHistogram(prometheus.HistogramOpts{Name: "highwater_chunk_seconds", Help: "Time to land one chunk, in seconds.", Buckets: prometheus.ExponentialBuckets(0.001, 4, 9)}),
	}
	m.rows.WithLabelValues("written")
	m.rows.WithLabelValues("duplicate")
	m.registry.MustRegister(m.rows, m.letters, m.runs, m.chunks, &scrape{gauges: gauges})
	return m
}

// Chunk counts a chunk that was committed.
func (m *Metrics) Chunk(written, duplicates, letters int64, took time.Duration) {
	m.rows.WithLabelValues("written").Add(float64(written))
	m.rows.WithLabelValues("duplicate").Add(float64(duplicates))
	m.letters.Add(float64(letters))
	m.chunks.Observe(took.Seconds())
}

// RunEnded counts a run by how it ended.
func (m *Metrics) RunEnded(status, code string) { m.runs.WithLabelValues(status, code).Inc() }

// scrape reads the gauges from the database when they are asked for.
type scrape struct {
	gauges func(context.Context) (store.Gauges, error)
}

var (
	lagDesc     = prometheus.NewDesc("highwater_lag_messages", "Messages between the stored positions and the heads as last measured, all connectors together.", nil, nil)
	lettersDesc = prometheus.NewDesc("highwater_open_dead_letters", "Dead letters that are open, all connectors together.", nil, nil)
)

func (s *scrape) Describe(ch chan<- *prometheus.Desc) {
	ch <- lagDesc
	ch <- lettersDesc
}

func (s *scrape) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), answerWait) //nolint:forbidigo // prometheus hands no context down
	defer cancel()
	g, err := s.gauges(ctx)
	if err != nil {
		return // the database is away: the gauges are absent, the counters still answer
	}
	ch <- prometheus.MustNewConstMetric(lagDesc, prometheus.GaugeValue, float64(g.Lag))
	ch <- prometheus.MustNewConstMetric(lettersDesc, prometheus.GaugeValue, float64(g.DeadLetters))
}

// Server is the HTTP side. Make it with [Start].
type Server struct {
	http *http.Server
	addr string
	done chan error
}

// Start listens on addr and answers until [Server.Stop]. ready tells why the sidecar cannot work, or nil.
func Start(ctx context.Context, addr string, m *Metrics, ready func(context.Context) error) (*Server, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listening on http-addr %s: %w", addr, err)
	}
	s := &Server{
		http: &http.Server{Handler: handler(m, ready), ReadHeaderTimeout: headerWait},
		addr: l.Addr().String(),
		done: make(chan error, 1),
	}
	go func() { s.done <- s.http.Serve(l) }()
	return s, nil
}

// Addr is where the server listens, with the port it was given.
func (s *Server) Addr() string { return s.addr }

// Stop ends the server and waits for answers in progress, one second at most.
func (s *Server) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWait)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if serve := <-s.done; !errors.Is(serve, http.ErrServerClosed) {
		err = errors.Join(err, serve)
	}
	if err != nil {
		return fmt.Errorf("stopping the health endpoint: %w", err)
	}
	return nil
}

func handler(m *Metrics, ready func(context.Context) error) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("ok\n"))
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), answerWait)
		defer cancel()
		if err := ready(ctx); err != nil {
			http.Error(w, "not ready: the database does not answer", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ready\n"))
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	return mux
}
