// Package store keeps what a cluster must not lose: objects in a bucket or in a folder that all of its
// machines see.
//
// It promises that an object is written once, whole, or not at all, however many try at once and
// whoever is killed meanwhile; that whoever is told that his object is there finds it after a
// loss of power; and that an error that leaves it open whether something was written says so, and
// is never called ErrExists. Probe finds out whether a store can keep that, and refuses it if not.
//
//	Open(address) ─▶ Store ── Create, Open, List, Delete
//	                  │  └─ Identity, OpenSame: inputs, which others may change
//	                  ├─ Sub(prefix)
//	                  ├─ Probe, Mark, CheckMark: can it be trusted, from two machines too?
//	                  └─ CreateJournal ─▶ Journal: lines as they come, ReadJournal reads them back
//
//	in a folder   temporary ─▶ sync ─▶ link(2) to the name ─▶ sync the folder   EEXIST: somebody was first
//	in a bucket   PUT, If-None-Match: *, and a nonce                            412: somebody was, perhaps oneself
//
// A journal is appended to in a folder (name.append). A bucket cannot append: there it is in pieces
// (name.000000, name.000001, …), each created whole. Whoever reads one does not care which.
//
// # Which S3
//
// A bucket must know If-None-Match on PUT. These are known to:
//
//	service          AWS S3, Cloudflare R2, OVH, CoreWeave
//	server           MinIO, SeaweedFS, versitygw (with which the tests of this package race)
//	not with it      GCS and Azure: their conditions are said otherwise, and they are not opened
//
// What ignores the condition is refused by Probe; so is what lists in no order, as the directory
// buckets of AWS do. A bucket with versions works, and keeps what was deleted. An object in a bucket
// has 5 GiB at most.
//
// # Which folder
//
// A file system must have hard links: ext4, xfs, btrfs, zfs and NFS do; FAT and many that lie over a
// bucket (FUSE) do not, and the first object is refused there with an error that says so. Clients of
// NFS remember for some seconds what was not there. That costs a look too many and never a second
// winner; lookupcache=positive spares it.
//
// A folder that is unmounted under a process that uses it is away (ErrAway): it is not taken for an empty one, nor made anew.
package store
