package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/headrace/headrace/internal/disk"
)

const (
	// folderTries bounds the attempts to make a folder that others keep removing as empty. Each
	// removal follows the deletion of an object next to the one being made.
	folderTries = 100
	// tempAge is the age at which a killed writer's file is deleted. No writer takes a day for an
	// object. If one does, its link fails, and only its time is lost.
	tempAge = 24 * time.Hour
)

// errFolder says that a name is also the beginning of others.
var errFolder = errors.New("there are objects under it, and a folder holds no object of its own")

// errBeginning says that a beginning of a name, up to a slash, is a name too.
var errBeginning = errors.New("a beginning of its name is an object, and an object is no folder")

// Create implements Store.
//
//	temporary file ─▶ sync its bytes ─▶ link it to the name ─▶ sync the folder ─▶ unlink the temporary
func (f *folder) Create(ctx context.Context, name string, body io.Reader, size int64) error {
	if err := f.create(ctx, name, body, size); err != nil {
		return fmt.Errorf("store: create %s: %w", name, err)
	}
	return nil
}

// create does what Create describes. The look whether the name is free only saves work: publish
// decides which writer wins.
func (f *folder) create(ctx context.Context, name string, body io.Reader, size int64) error {
	if err := checkRequest(ctx, name); err != nil {
		return err
	}
	if err := f.checkPresent(); err != nil {
		return err
	}
	target := f.path(name)
	if err := f.checkFree(target); err != nil {
		return f.takenError(target, err)
	}
	temp, err := f.writeTemporary(ctx, body, size)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp) }() // sweep deletes leftovers by age
	return f.publish(temp, target)
}

// checkFree returns ErrExists if an object stands at target, so that no body is written in vain. A free
// name proves nothing.
func (f *folder) checkFree(target string) error {
	info, err := os.Lstat(target)
	switch {
	case err == nil && info.IsDir():
		return errFolder
	case err == nil:
		return ErrExists
	case isAbsent(err):
		return nil
	}
	return disk.Bare(err)
}

// takenError returns the error for a name that is not free. The first writer may have linked its file and
// been killed before syncing the folder. A caller that gets ErrExists counts on the object as on its
// own. So the object must survive the loss of power before taken returns.
func (f *folder) takenError(target string, err error) error {
	if errors.Is(err, ErrExists) {
		f.disk.SyncFolder(target)
	}
	return err
}

// racedError returns the error for a name that the file system called taken just now, even if it is free
// again.
func (f *folder) racedError(target string) error {
	err := f.checkFree(target)
	if err == nil {
		return ErrExists
	}
	return f.takenError(target, err)
}

// writeTemporary writes a body to a temporary file, and syncs it.
func (f *folder) writeTemporary(ctx context.Context, body io.Reader, size int64) (string, error) {
	file, err := f.temporary()
	if err != nil {
		return "", err
	}
	_, err = io.Copy(file, newExactBody(ctx, body, size))
	if err == nil {
		err = f.disk.SyncData(file)
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return "", disk.Bare(err)
	}
	return file.Name(), nil
}

// temporary opens a file that no list shows. All lie in one folder, so that sweep finds the files of
// killed writers without a search through everything.
func (f *folder) temporary() (*os.File, error) {
	path := filepath.Join(f.root, tempFolder, rand.Text())
	return f.createFile(path, os.O_WRONLY)
}

// createFile makes a new file, and the folders that it needs.
func (f *folder) createFile(path string, flags int) (*os.File, error) {
	var file *os.File
	err := f.inFolder(path, func() (err error) {
		file, err = os.OpenFile(path, flags|os.O_CREATE|os.O_EXCL, f.mode)
		return err
	})
	if err == nil && f.mode != fileMode {
		err = f.setMode(file)
	}
	return file, err
}

// setMode gives a new file the configured mode, whatever the umask of the process. On an error it removes the file.
func (f *folder) setMode(file *os.File) error {
	err := file.Chmod(f.mode)
	if err == nil {
		return nil
	}
	_ = file.Close()
	_ = os.Remove(file.Name())
	return disk.Bare(err)
}

// inFolder runs do, which needs the folder of path. If the folder is missing it makes the folder and runs do again.
func (f *folder) inFolder(path string, do func() error) error {
	for range folderTries {
		err := do()
		switch {
		case errors.Is(err, syscall.ENOTDIR):
			return errBeginning
		case !errors.Is(err, fs.ErrNotExist):
			return disk.Bare(err)
		}
		if err := f.makeFolder(filepath.Dir(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return disk.Bare(err)
		}
	}
	return fmt.Errorf("its folder was taken away %d times", folderTries)
}

// makeFolder makes a folder and those above it, and syncs their presence. It also syncs a folder
// that another process made in between, as that process may be killed before it syncs.
func (f *folder) makeFolder(path string) error {
	err := os.Mkdir(path, 0o700)
	if errors.Is(err, fs.ErrNotExist) && filepath.Dir(path) != path {
		if err := f.makeFolder(filepath.Dir(path)); err != nil {
			return err
		}
		err = os.Mkdir(path, 0o700)
	}
	switch {
	case err == nil && f.mode != fileMode:
		err = os.Chmod(path, f.mode|f.mode&0o444>>2) // readers of its files may look into it
	case errors.Is(err, fs.ErrExist):
		err = nil
	}
	f.disk.SyncFolder(path)
	return err
}

// publish links a whole file to its name. The file system lets exactly one writer do it.
func (f *folder) publish(temp, target string) error {
	err := f.inFolder(target, func() error {
		err := f.link(temp, target)
		if errors.Is(err, fs.ErrNotExist) && isGone(temp) {
			return errSwept
		}
		return err
	})
	switch {
	case err == nil, isSameFile(temp, target):
		f.disk.SyncFolder(target)
		return nil
	case errors.Is(err, fs.ErrExist):
		return f.racedError(target)
	case lacksHardLinks(err):
		return fmt.Errorf("%w: the file system of %s makes no hard links (%w), without which two writers can both win: "+
			"take another folder, or a bucket", ErrUnsafe, f.root, err)
	}
	return err
}

// errSwept says that a writer took more than tempAge.
var errSwept = fmt.Errorf("what was written was swept as older than %s", tempAge)

func isGone(path string) bool {
	_, err := os.Lstat(path)
	return isAbsent(err)
}

// isSameFile reports whether target is already a link to our own temporary file. A file server's answer to a link may be lost on its
// way. The client then asks again, and hears that the name is taken: by its own file.
func isSameFile(temp, target string) bool {
	tempInfo, err := os.Lstat(temp)
	if err != nil {
		return false
	}
	targetInfo, err := os.Lstat(target)
	return err == nil && os.SameFile(tempInfo, targetInfo)
}

// lacksHardLinks reports whether an error means that there are no hard links here, or none from one folder
// to another.
func lacksHardLinks(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EPERM) ||
		errors.Is(err, syscall.EXDEV) || errors.Is(err, syscall.EMLINK)
}

// sweep deletes temporary files that are older than a time: their writers were killed.
func (f *folder) sweep(before time.Time) {
	entries, err := os.ReadDir(filepath.Join(f.root, tempFolder))
	if err != nil {
		return // the folder is missing or not ours to read: nothing is lost
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && info.Mode().IsRegular() && info.ModTime().Before(before) {
			_ = os.Remove(filepath.Join(f.root, tempFolder, e.Name()))
		}
	}
}

// Append implements Appender.
func (f *folder) Append(ctx context.Context, name string) (Tail, error) {
	file, err := f.append(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("store: append to %s: %w", name, err)
	}
	return &tail{file, f.disk.SyncData}, nil
}

// append makes an empty file under the object's own name, and syncs its presence. It makes nothing
// in a folder that was lost: see checkPresent.
func (f *folder) append(ctx context.Context, name string) (*os.File, error) {
	if err := checkRequest(ctx, name); err != nil {
		return nil, err
	}
	if err := f.checkPresent(); err != nil {
		return nil, err
	}
	path := f.path(name)
	file, err := f.createFile(path, os.O_WRONLY|os.O_APPEND)
	if errors.Is(err, fs.ErrExist) {
		return nil, f.racedError(path)
	}
	f.disk.SyncFolder(path)
	return file, err
}

type tail struct {
	*os.File
	sync func(*os.File) error
}

func (t *tail) Sync() error { return t.sync(t.File) }
