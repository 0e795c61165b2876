package bus

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/nats-io/nats-server/v2/server"
)

// checkStore finds what a server says nothing of when it starts on a damaged store: it leaves out what it cannot
// read, and is well. But what is left out like that cannot be made again in every case, as its remains
// are in the way. A hub of three is not asked: what it has lost it gets from the others.
func (h *Hub) checkStore(s *server.Server) error {
	if h.config.Route != "" {
		return nil
	}
	info, err := s.Jsz(&server.JSzOptions{Accounts: true, Streams: true})
	if err != nil {
		return fmt.Errorf("%w: %w", errStore, err)
	}
	for _, account := range info.AccountDetails {
		if err := checkAccount(account, filepath.Join(storeDir(h.config.Dir), "jetstream", account.Name, "streams")); err != nil {
			return fmt.Errorf("%w: %w", errStore, err)
		}
	}
	return nil
}

// checkAccount compares the folders of streams with what the server has made of them.
func checkAccount(account *server.AccountDetail, dir string) error {
	for _, name := range folders(dir) {
		if !slices.ContainsFunc(account.Streams, func(s server.StreamDetail) bool { return s.Name == name }) {
			return fmt.Errorf("stream %s was not recovered", name)
		}
	}
	return nil
}

// folders are the names of those in a folder; none if it is not there.
func folders(dir string) (names []string) {
	entries, _ := os.ReadDir(dir) // what cannot be read the server could not read, either
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names
}
