// Package store keeps what a cluster must not lose. It keeps objects in a bucket, or in a folder that all machines of
// the cluster see.
//
// An object is written once, whole, or not at all, even if many write it at once and some are killed meanwhile. A
// writer that learns that its object is there finds it after a loss of power. An error that leaves open whether
// something was written says so, and is never ErrExists. Probe finds out whether a store can keep that, and refuses it
// if not.
//
//	Open(address) ─▶ Store ── Create, Open, List, Delete
//	                  │  └─ Identity, OpenSame: inputs, which others may change
//	                  ├─ Probe: can it be trusted?
//	                  └─ CreateJournal ─▶ Journal: lines as they come, ReadJournal reads them back
//
//	in a folder   temporary ─▶ sync ─▶ link(2) to the name ─▶ sync the folder   EEXIST: somebody was first
//	in a bucket   PUT, If-None-Match: *, and a nonce                            412: somebody was, perhaps oneself
//
// A journal is appended to in a folder (name.append). A bucket cannot append: there a journal is in pieces
// (name.000000, name.000001, …), each created whole. Readers need not care which.
//
// # Which S3
//
// A bucket must know If-None-Match on PUT. These do:
//
//	service          AWS S3, Cloudflare R2, OVH, CoreWeave
//	server           MinIO, SeaweedFS, versitygw (with which the tests of this package race)
//	not with it      GCS and Azure: their conditions are said otherwise, and they are not opened
//
// Probe refuses a bucket that ignores the condition, and one that lists in no order, as the directory buckets of AWS
// do. A bucket with versions works, and keeps what was deleted. An object in a bucket has 5 GiB at most.
//
// # Which folder
//
// A file system must have hard links. ext4, xfs, btrfs, zfs and NFS do. FAT and many that lie over a bucket (FUSE) do
// not, and refuse the first object with an error that says so. NFS clients remember for some seconds that a file was
// missing. That costs a look too many and never a second winner; lookupcache=positive avoids it.
//
// A folder that is unmounted while a process uses it is away (ErrAway): the store neither takes it for empty nor makes
// it anew.
package store
