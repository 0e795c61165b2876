package serve

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/headrace/headrace/provider"
)

// listMaxAge is the age at which a list of models is asked for again.
const listMaxAge = 10 * time.Minute

// maxList bounds a list of models, in bytes: the longest in use, of gateways with thousands, is near 1 MiB.
const maxList = 8 << 20

// modelList is the list of models that was asked for last.
type modelList struct {
	at     time.Time
	header http.Header
	body   []byte // nil: there is none
}

// serveModels answers with the provider's list of models. One request at a time asks for it, and the
// others wait for that.
func (s *Server) serveModels(w http.ResponseWriter, r *http.Request, face provider.Face) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		writeRefusal(w, face, refused{Refusal: provider.Refusal{Status: http.StatusMethodNotAllowed, Code: "headrace_method", Message: "this path takes GET"}})
		return
	}
	var list *modelList
	select {
	case list = <-s.models:
	case <-r.Context().Done():
		return
	}
	if refusal := s.refresh(r.Context(), &list); refusal != nil {
		writeRefusal(w, face, *refusal)
		return
	}
	copyAnswerHeaders(w.Header(), list.header)
	w.Header().Set("Content-Length", strconv.Itoa(len(list.body)))
	_, _ = w.Write(list.body) // the client may have gone
}

// refresh asks for the list again if it is old, and puts it back for the next request.
func (s *Server) refresh(ctx context.Context, list **modelList) (refusal *refused) {
	defer func() { s.models <- *list }()
	if now := s.cfg.Clock.Now(); (*list).body == nil || now.Sub((*list).at) >= listMaxAge {
		var fresh *modelList
		if fresh, refusal = s.fetchModels(ctx); refusal == nil {
			fresh.at = now
			*list = fresh
		}
	}
	return refusal
}

// fetchModels asks the provider for its list of models. The list is for all clients, so the request has the headers
// of none.
func (s *Server) fetchModels(ctx context.Context) (*modelList, *refused) {
	up := s.cfg.Upstream(s.cfg.Models)
	if up == nil {
		return nil, &refused{Refusal: provider.Refusal{Status: http.StatusNotFound, Code: "headrace_path", Message: "no provider lists its models"}}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := s.alarm(s.cfg.CommitAfter, func() { cancel(errTimeout) })
	defer late()
	resp, err := up.List(ctx, requestHeaders(nil))
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
		return nil, &refused{Refusal: provider.Refusal{Status: http.StatusBadGateway, Code: "headrace_upstream", Message: "the provider did not list its models: " + providerText(fault)}}
	}
	return &modelList{header: resp.Header, body: append([]byte{}, body...)}, nil
}
