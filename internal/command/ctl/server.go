package ctl

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/socket"
)

// A Target carries commands out, one at a time. An error says why a command was refused, and what is allowed.
type Target interface {
	Do(ctx context.Context, c Command) (Answer, error)
}

// An Answer is what a target says.
type Answer struct {
	Text     string          `json:"text"`               // for people; it may have several lines
	Progress *event.Progress `json:"progress,omitempty"` // of a run's status
	Status   any             `json:"status,omitempty"`   // of the status of headrace serve
	Files    *Files          `json:"files,omitempty"`    // of a run, for its report
	Refused  string          `json:"refused,omitempty"`  // why, if it was
}

// Files names the files of a run, as whole paths.
type Files struct {
	Output   string `json:"output"`
	Errors   string `json:"errors"`
	Timeline string `json:"timeline"` // "": there is none
}

// request holds the words of a client.
type request struct {
	Words []string `json:"words"`
}

// path is that of all commands. Its number is the version of the protocol.
const path = "/v1/do"

// Bounds of a request.
const (
	mostRequest = 16 << 10         // bytes
	requestWait = 5 * time.Second  // for all of it
	commandWait = 10 * time.Second // for a target that hangs
	idleWait    = 5 * time.Second
	closeWait   = time.Second // for the command that is under way at the end
)

// A Server takes commands for a target. A nil Server takes none.
type Server struct {
	target Target
	http   *http.Server
	served sync.WaitGroup

	commandLock sync.Mutex // one command at a time
	closed      bool       // no further one
}

// Serve listens for commands under each of the names, in the folder of the user's runs, until Close.
func Serve(folder string, target Target, of ...string) (*Server, error) {
	s := &Server{target: target}
	s.http = &http.Server{Handler: s, ReadTimeout: requestWait, IdleTimeout: idleWait, MaxHeaderBytes: mostRequest}
	for _, name := range of {
		ln, err := listen(folder, name)
		if err != nil {
			_ = s.Close()
			return nil, err
		}
		s.served.Go(func() { _ = s.http.Serve(ln) }) // it ends by Close
	}
	return s, nil
}

// listen opens the socket of a name. It first removes sockets that killed runs have left in the folder.
func listen(folder, name string) (*socket.Listener, error) {
	path, err := socketPath(folder, name)
	if err != nil {
		return nil, err
	}
	if err := socket.OwnFolder(filepath.Dir(path)); err != nil {
		return nil, err
	}
	leftovers, _ := filepath.Glob(filepath.Join(filepath.Dir(path), prefix+"*"+suffix+"*")) // some were not ready yet
	for _, old := range leftovers[:min(len(leftovers), mostLeftovers)] {
		socket.RemoveDead(old)
	}
	return socket.Listen(path)
}

// mostLeftovers bounds the sockets that are looked at. The next run looks at the others.
const mostLeftovers = 100

// Close takes no further command, and waits for the one that is under way.
func (s *Server) Close() error {
	if s == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = s.http.Close()
	}
	s.commandLock.Lock()
	s.closed = true
	s.commandLock.Unlock()
	s.served.Wait()
	return err
}

// ServeHTTP reads the command in a request, has the target carry it out, and sends the answer.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	answer := func(code int, a Answer) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(a) // a client that has gone needs none
	}
	var req request
	switch {
	case r.URL.Path != path:
		answer(http.StatusNotFound, Answer{Refused: "this headrace does not know " + r.URL.Path + ": use the same version of headrace for both"})
		return
	case r.Method != http.MethodPost:
		answer(http.StatusMethodNotAllowed, Answer{Refused: "want POST"})
		return
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostRequest)).Decode(&req); err != nil {
		answer(http.StatusBadRequest, Answer{Refused: "the request is not JSON: " + err.Error()})
		return
	}
	c, err := Parse(req.Words)
	if err != nil {
		answer(http.StatusBadRequest, Answer{Refused: err.Error()})
		return
	}
	a, err := s.runCommand(r.Context(), c)
	if err != nil {
		answer(http.StatusBadRequest, Answer{Refused: err.Error()})
		return
	}
	answer(http.StatusOK, a)
}

// runCommand has the target carry out a command, once the one before it has ended. It refuses all commands after
// Close.
func (s *Server) runCommand(ctx context.Context, c Command) (Answer, error) {
	s.commandLock.Lock()
	defer s.commandLock.Unlock()
	if s.closed {
		return Answer{}, errOver
	}
	ctx, cancel := context.WithTimeout(ctx, commandWait)
	defer cancel()
	return s.target.Do(ctx, c)
}
