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
// are in the way. A hub of three is not asked: what it has lost it gets from the others. What is
// there and wrong is found by [Bus.Mend].
func (h *Hub) checkStore(s *server.Server) error {
	if h.config.Route != "" {
		return nil
	}
	info, err := s.Jsz(&server.JSzOptions{Accounts: true, Streams: true, Consumer: true})
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
		i := slices.IndexFunc(account.Streams, func(s server.StreamDetail) bool { return s.Name == name })
		if i < 0 {
			return fmt.Errorf("stream %s was not recovered", name)
		}
		if err := checkStream(&account.Streams[i], filepath.Join(dir, name, "obs")); err != nil {
			return err
		}
	}
	return nil
}

func checkStream(stream *server.StreamDetail, dir string) error {
	for _, name := range folders(dir) {
		if !slices.ContainsFunc(stream.Consumer, func(c *server.ConsumerInfo) bool { return c.Name == name }) {
			return fmt.Errorf("consumer %s of stream %s was not recovered", name, stream.Name)
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
