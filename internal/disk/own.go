package disk

import "errors"

// ErrOwned says that somebody else owns an open file.
var ErrOwned = errors.New("another user owns the file")
