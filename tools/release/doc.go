// Command release builds everything that a user can install, from the version in the file
// VERSION and the commit that is checked out. It publishes nothing.
//
// All packages of one platform carry the same binary. Each file is made without the time of the
// build, names of folders or anything else of the machine: two builds of one commit by
// one version of Go have the same checksums.
//
//	VERSION, commit ─▶ go build ─▶ binaries ─┬▶ archives (.tar.gz, .zip) ─▶ formula
//	          licences, SBOM, man pages ─────┼▶ wheels
//	                                         ├▶ npm packages
//	                                         ├▶ Debian packages
//	                                         └▶ folders for the container file
//
// nfpm writes the Debian packages. goreleaser publishes the files (.goreleaser.yaml, make snapshot) and
// builds none: wheels, npm packages and the licences of a binary need this code all the same.
//
// Usage, from the root of the repository:
//
//	go -C tools/release run . [-targets host] [-o dist]
package main
