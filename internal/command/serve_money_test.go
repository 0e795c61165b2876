//go:build unix

package command

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider/sim"
)

// 64 programs at once never spend more than --max-cost, and use nearly all of it. Only what was paid for was called.
func TestServeHoldsMaxCost(t *testing.T) {
	server, base := serveFor(t, sim.Config{Headers: true, Latency: sim.Latency{Median: 20 * time.Millisecond}})
	folder := t.TempDir()
	prices := `{"m":{"input":1000,"output":1000}}`
	must.Do(t, os.WriteFile(filepath.Join(folder, "prices.json"), []byte(prices), 0o600))
	s := startServing(t, folder, "--base-url", base, "--api-key-env", "none", "--max-cost", "1", "--prices", "prices.json")
	ask := strings.Replace(hello, "{", `{"max_tokens":20,`, 1)
	var programs sync.WaitGroup
	var paid, refused, tokens atomic.Int64
	for range 64 {
		programs.Go(func() {
			for range 3 {
				switch status, text, _ := s.chat(ask); status {
				case http.StatusOK:
					var answer struct {
						Usage struct {
							TotalTokens int64 `json:"total_tokens"`
						}
					}
					if err := json.Unmarshal([]byte(text), &answer); err != nil {
						t.Error(err)
					}
					paid.Add(1)
					tokens.Add(answer.Usage.TotalTokens)
				case http.StatusPaymentRequired:
					if refused.Add(1); !strings.Contains(text, "headrace_budget") {
						t.Error(text)
					}
				default:
					t.Errorf("%d %s", status, text)
				}
			}
		})
	}
	programs.Wait()
	used := float64(tokens.Load()) / 1000
	if used > 1 || used < 0.95 || refused.Load() == 0 || uint64(paid.Load()) != uint64(server.Books().Accepted) {
		t.Errorf("$%.3f used by %d answers; %d refused", used, paid.Load(), refused.Load())
	}
}
