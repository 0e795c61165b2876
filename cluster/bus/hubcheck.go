package bus

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/nats-io/nats-server/v2/server"
)

// checkStore finds damage that a server does not report. A server that starts on a damaged store leaves out what it
// cannot read, and reports itself healthy. Streams left out like that cannot always be made again, because their
// remains are in the way. A hub of three is not checked: it gets lost data from the others.
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

// checkAccount compares the folders of streams with the streams of the server.
func checkAccount(account *server.AccountDetail, dir string) error {
	for _, name := range folders(dir) {
		if !slices.ContainsFunc(account.Streams, func(s server.StreamDetail) bool { return s.Name == name }) {
			return fmt.Errorf("stream %s was not recovered", name)
		}
	}
	return nil
}

// folders returns the names of the folders in dir; none if dir does not exist.
func folders(dir string) (names []string) {
	entries, _ := os.ReadDir(dir) // what cannot be read the server could not read, either
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names
}
