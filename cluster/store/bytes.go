package store

import (
	"bytes"
	"context"
	"fmt"
	"io"
)

// CreateBytes creates an object from memory.
func CreateBytes(ctx context.Context, s Store, name string, content []byte) error {
	return s.Create(ctx, name, bytes.NewReader(content), int64(len(content)))
}

// ReadAll reads a whole object; an object of more than most bytes is an error.
func ReadAll(ctx context.Context, s Store, name string, most int64) ([]byte, error) {
	in, err := s.Open(ctx, name, 0, -1)
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }()
	content, err := io.ReadAll(io.LimitReader(in, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("store: read %s: %w", name, err)
	case int64(len(content)) > most:
		return nil, fmt.Errorf("store: read %s: it has more than %d bytes", name, most)
	}
	return content, nil
}
