// A report's lines, written to PostgreSQL by one holder at a time; what was cut short goes on at its next line.
//
// Go 1.21 or newer, its standard library, and psql. docs/applications.md explains it.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// For what has no other limit.
const patience = 5 * time.Second

// The transport speaks HTTP over the sidecar's Unix socket, whatever host a URL names.
var transport = &http.Transport{
	DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", os.Getenv("FENCEDLEASE_SOCKET"))
	},
}

type lease struct {
	State       string `json:"state"`
	Resource    string `json:"resource"`
	Fence       int64  `json:"fence"`
	Holding     string `json:"holding"`
	RemainingMs *int64 `json:"remainingMs"`
	Reason      string `json:"reason"`
	Ending      string `json:"ending"`
}

type verdict struct {
	Allowed     bool              `json:"allowed"`
	RemainingMs int64             `json:"remainingMs"`
	Headers     map[string]string `json:"headers"`
	Reason      string            `json:"reason"`
	Message     string            `json:"message"`
}

// stop is the end of the work before it is complete.
type stop struct {
	code int
	why  string
}

func (s stop) Error() string { return s.why }

// ask sends a request and reads the JSON of its answer, if any.
func ask(method, path string, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	if body == nil {
		text = nil
	}
	request, err := http.NewRequest(method, "http://lease"+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	client := http.Client{Transport: transport, Timeout: patience}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if answer == nil {
		_, err = io.Copy(io.Discard, response.Body)
		return err
	}
	return json.NewDecoder(response.Body).Decode(answer)
}

// watch cancels when the lease is lost or given back, and when the sidecar cannot be heard.
func watch(ctx context.Context, fence int64, cancel context.CancelCauseFunc) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://lease/v1/events", nil)
	if err != nil {
		cancel(err)
		return
	}
	asked := time.Now()
	until := asked.Add(patience)
	silent := func() { cancel(errors.New("the sidecar was silent for too long")) }
	silence := time.AfterFunc(patience, silent)
	defer silence.Stop()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		cancel(fmt.Errorf("the sidecar cannot be heard: %w", err))
		return
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for first := true; lines.Scan(); first = false {
		heard := time.Now()
		var event lease
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			cancel(err)
			return
		}
		if event.State != "" && (event.State != "ACTIVE" || event.Fence != fence || event.Ending != "") {
			cancel(fmt.Errorf("%s %s%s", event.State, event.Reason, event.Ending))
			return
		}
		if !heard.Before(until) {
			silent()
			return
		}
		from := heard
		if first { // the answer to a question, however late it is
			from = asked
		}
		if event.RemainingMs != nil {
			until = from.Add(time.Duration(*event.RemainingMs) * time.Millisecond)
			silence.Reset(time.Until(until))
		}
	}
	cancel(errors.New("the sidecar closed the stream of events"))
}

const write = `
BEGIN;
SELECT fencedlease.use_fence(:'resource', :'fence', :'holder');
INSERT INTO report (run, line, fence) VALUES (:'run', :'line', :'fence') ON CONFLICT DO NOTHING;
COMMIT;
`

// psql stands for your driver; with pgx the code is in pgconn.PgError.Code.
func psql(ctx context.Context, sql string, variables ...string) (string, string, error) {
	arguments := []string{"-XqAt", "-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=verbose"}
	for _, variable := range variables {
		arguments = append(arguments, "-v", variable)
	}
	command := exec.CommandContext(ctx, "psql", append(arguments, os.Getenv("REPORT_DATABASE"))...)
	var answer, errorText strings.Builder
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(sql), &answer, &errorText
	err := command.Run()
	return strings.TrimSpace(answer.String()), errorText.String(), err
}

func commit(held lease, run string, line int) error {
	var answer verdict
	asked := time.Now()
	check := map[string]any{"fence": held.Fence, "needMs": number("REPORT_NEED_MS")}
	if err := ask(http.MethodPost, "/v1/commit-check", check, &answer); err != nil {
		return err
	}
	if !answer.Allowed {
		return stop{11, fmt.Sprintf("too late: %s: %s", answer.Reason, answer.Message)}
	}
	// Counted from the question, however late the answer is.
	until := asked.Add(time.Duration(answer.RemainingMs) * time.Millisecond)
	if !time.Now().Before(until) {
		return stop{11, "too late: the answer came when nothing remained"}
	}
	// Not cut by a loss: it was allowed, and cutting it would leave unknown what became of it.
	writing, done := context.WithDeadline(context.Background(), until)
	defer done()
	_, errorText, err := psql(writing, write, "resource="+held.Resource, "holder="+held.Holding,
		fmt.Sprintf("fence=%d", held.Fence), "run="+run, fmt.Sprintf("line=%d", line))
	switch {
	case strings.Contains(errorText, "FL001"):
		message, _, _ := strings.Cut(errorText, "\n")
		rejection := map[string]any{"fence": held.Fence, "resourceKind": "postgresql", "message": message}
		if err := ask(http.MethodPost, "/v1/fence-rejected", rejection, nil); err != nil {
			fmt.Fprintln(os.Stderr, "the refusal could not be reported:", err)
		}
		return stop{12, "refused: " + message}
	case writing.Err() != nil:
		return stop{13, "unknown: the database did not confirm in time"}
	case err != nil:
		return fmt.Errorf("%w: %s", err, errorText)
	}
	return nil
}

func nextLine(ctx context.Context, run string) (int, error) {
	reading, done := context.WithTimeout(ctx, patience)
	defer done()
	query := "SELECT coalesce(max(line), 0) + 1 FROM report WHERE run = :'run';"
	answer, errorText, err := psql(reading, query, "run="+run)
	switch {
	case ctx.Err() != nil:
		return 0, stop{10, fmt.Sprintf("cancelled: %v", context.Cause(ctx))}
	case reading.Err() != nil:
		return 0, fmt.Errorf("the database did not answer within %v", patience)
	case err != nil:
		return 0, fmt.Errorf("%w: %s", err, errorText)
	}
	return strconv.Atoi(answer)
}

func work() error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	// SIGTERM comes at a loss too, and before a planned end.
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	go func() {
		<-terminated
		cancel(errors.New("SIGTERM"))
	}()

	var held lease
	if err := ask(http.MethodGet, "/v1/lease", nil, &held); err != nil {
		return err
	}
	if held.State != "ACTIVE" {
		return stop{10, "cancelled: " + held.State}
	}
	go watch(ctx, held.Fence, cancel)

	run, first := os.Getenv("REPORT_RUN"), number("REPORT_FROM")
	if first == 0 {
		var err error
		if first, err = nextLine(ctx, run); err != nil {
			return err
		}
	}
	for line := first; line <= number("REPORT_LINES"); line++ {
		select {
		case <-time.After(time.Duration(number("REPORT_LINE_MS")) * time.Millisecond): // the work
		case <-ctx.Done():
			return stop{10, fmt.Sprintf("cancelled: %v", context.Cause(ctx))}
		}
		if err := commit(held, run, line); err != nil {
			return err
		}
	}
	return stop{0, "complete"}
}

// number is what a variable of the environment says, and 0 if it says none.
func number(name string) int {
	value, _ := strconv.Atoi(os.Getenv(name))
	return value
}

func main() {
	err := work()
	fmt.Println(err)
	var end stop
	if errors.As(err, &end) {
		os.Exit(end.code)
	}
	os.Exit(1)
}
