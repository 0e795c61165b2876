package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
)

// Mark writes an object for another machine to see, and returns its name. The caller deletes it once
// the other machine has reported the result of CheckMark.
func Mark(ctx context.Context, s Store, chance *rand.Rand) (name string, err error) {
	name = fmt.Sprintf("%smark-%016x", probeFolder, chance.Uint64())
	return name, CreateBytes(ctx, s, name, []byte(name))
}

// CheckMark looks, on another machine, for the object that Mark wrote on the first. It must be
// readable and listed, and its name must be taken. *Unsafe names the failure; any other error says
// that the store could not be asked.
func CheckMark(ctx context.Context, s Store, name string) error {
	if err := checkMark(ctx, s, name); err != nil {
		return fmt.Errorf("store: mark: %w", err)
	}
	return nil
}

func checkMark(ctx context.Context, s Store, name string) error {
	if !strings.HasPrefix(name, probeFolder+"mark-") {
		return fmt.Errorf("%s is not a mark", name)
	}
	content, err := ReadAll(ctx, s, name, MaxName)
	switch {
	case errors.Is(err, ErrMissing):
		return &Unsafe{Name: name, Why: "another machine wrote it, and it cannot be read here: is it the same store?"}
	case err != nil:
		return err
	case !bytes.Equal(content, []byte(name)):
		return &Unsafe{Name: name, Why: "another machine wrote it, and here something else is read"}
	}
	if err := markListed(ctx, s, name); err != nil {
		return err
	}
	switch err := CreateBytes(ctx, s, name, []byte("another")); {
	case err == nil:
		return &Unsafe{Name: name, Why: "another machine wrote it, and it was written here once more"}
	case !errors.Is(err, ErrExists):
		return err
	}
	return nil
}

func markListed(ctx context.Context, s Store, name string) error {
	for o, err := range s.List(ctx, name, "") {
		if err != nil {
			return err
		}
		if o.Name == name {
			return nil
		}
	}
	return &Unsafe{Name: name, Why: "another machine wrote it, and it is not listed here"}
}
