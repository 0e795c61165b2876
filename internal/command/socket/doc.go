// Package socket opens a unix socket for the processes of one user.
//
// It promises that no other user's process is heard, and that a socket has its name only when nobody else may use it. A
// socket that a killed process left behind is replaced; any other file stays. Two that start at once in one folder take
// turns, by a lock on it.
//
//	path.new ─ listen, 0600 ─ rename ─▶ path ─▶ Accept: own user's connections
package socket
