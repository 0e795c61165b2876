package disk

import (
	"errors"
	"io/fs"
	"os"
)

// Bare returns an error of the file system without the operation and the paths, which the
// caller's own text names.
func Bare(err error) error {
	var (
		path *fs.PathError
		link *os.LinkError
	)
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}
