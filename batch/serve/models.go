package serve

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/headrace/headrace/provider"
)

// listFor is the age at which a list of models is asked for again.
const listFor = 10 * time.Minute

// maxList bounds a list of models, in bytes: the longest in use, of gateways with thousands, is near 1 MiB.
const maxList = 8 << 20

// catalog is the list of models that was asked for last.
type catalog struct {
	at     time.Time
	header http.Header
	body   []byte // nil: there is none
}

// serveModels answers with the provider's list of models. One request at a time asks for it, and the
// others wait for that.
func (s *Server) serveModels(w http.ResponseWriter, r *http.Request, face provider.Face) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		plain(w, face, refused{Refusal: provider.Refusal{Status: http.StatusMethodNotAllowed, Code: "headrace_method", Message: "this path takes GET"}})
		return
	}
	var list *catalog
	select {
	case list = <-s.models:
	case <-r.Context().Done():
		return
	}
	if refusal := s.freshen(r.Context(), &list); refusal != nil {
		plain(w, face, *refusal)
		return
	}
	incoming(w.Header(), list.header)
	w.Header().Set("Content-Length", strconv.Itoa(len(list.body)))
	_, _ = w.Write(list.body) // the client may have gone
}

// freshen asks for the list again if it is old, and puts it back for the next request.
func (s *Server) freshen(ctx context.Context, list **catalog) (refusal *refused) {
	defer func() { s.models <- *list }()
	if now := s.cfg.Clock.Now(); (*list).body == nil || now.Sub((*list).at) >= listFor {
		var fresh *catalog
		if fresh, refusal = s.fetchModels(ctx); refusal == nil {
			fresh.at = now
			*list = fresh
		}
	}
	return refusal
}

// fetchModels asks for the list. It is for all clients, so the headers of none are in the question.
func (s *Server) fetchModels(ctx context.Context) (*catalog, *refused) {
	up := s.cfg.Upstream(s.cfg.Models)
	if up == nil {
		return nil, &refused{Refusal: provider.Refusal{Status: http.StatusNotFound, Code: "headrace_path", Message: "no provider lists its models"}}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := s.alarm(s.cfg.CommitAfter, func() { cancel(errTimeout) })
	defer late()
	resp, err := up.List(ctx, outgoing(nil))
	if err != nil {
		return nil, new(reasonOf(ctx, err))
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxList+1))
	switch {
	case err != nil:
		return nil, new(reasonOf(ctx, err))
	case resp.StatusCode != http.StatusOK || len(body) > maxList:
		fault := provider.Classify(resp.StatusCode, resp.Header, body)
		return nil, &refused{Refusal: provider.Refusal{Status: http.StatusBadGateway, Code: "headrace_upstream", Message: "the provider did not list its models: " + saidBy(fault)}}
	}
	return &catalog{header: resp.Header, body: append([]byte{}, body...)}, nil
}
