package timeline

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/internal/disk"
)

// PutAside gives an old timeline another name, as [journal.StartOver] does, and returns it;
// "" if there is nothing to keep. It leaves alone a file that is no timeline (ErrForeign),
// and one that a run writes (ErrInUse).
func PutAside(path string) (kept string, err error) {
	if info, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return "", nil
	}
	if err := mayMove(path); err != nil {
		return "", err
	}
	return journal.StartOver(path)
}

func mayMove(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|disk.NoFollow, 0)
	if err != nil {
		return disk.Bare(err)
	}
	defer func() { _ = f.Close() }() // it was only read
	text := make([]byte, len(mark))
	if _, err := io.ReadFull(f, text); err != nil || string(text) != mark {
		return ErrForeign
	}
	if errors.Is(disk.Own(f), disk.ErrOwned) {
		return ErrInUse
	}
	return nil
}
