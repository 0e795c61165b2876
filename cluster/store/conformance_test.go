package store_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/cluster/store/s3test"
	"github.com/headrace/headrace/cluster/store/storetest"
)

// A folder keeps what is promised of a store.
func TestFolder(t *testing.T) {
	storetest.Run(t, func(t testing.TB) store.Store {
		return open(t, filepath.Join(t.TempDir(), "not", "made"))
	})
}

// S3 keeps what is promised of a store, as the same bytes do in a folder.
func TestS3(t *testing.T) {
	server := s3test.Start(t)
	storetest.Run(t, func(t testing.TB) store.Store {
		return open(t, server.Address(prefixOf(t)))
	})
}

// What tests use in the place of a store keeps what is promised of one.
func TestMemory(t *testing.T) {
	storetest.Run(t, func(testing.TB) store.Store { return storetest.NewMemory() })
}

// open opens a store for a test, without connections of others.
func open(t testing.TB, address string, opts ...store.Option) store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), address, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(s); err != nil {
			t.Error(err)
		}
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return s
}

// prefixOf returns the prefix of a test's objects, apart from those of others.
func prefixOf(t testing.TB) string {
	return strings.NewReplacer("/", "-", " ", "-").Replace(t.Name())
}
