package bus

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

// A Role is what a token permits.
type Role string

// The roles. Each permits what the ones after it permit.
const (
	AdminRole Role = "admin" // all
	WorkRole  Role = "work"  // all but setting limits
	WatchRole Role = "watch" // reading how jobs, workers and limits stand
)

// Roles are all roles.
var Roles = []Role{AdminRole, WorkRole, WatchRole}

// ErrRole is the kind of error of a token whose role does not permit something.
var ErrRole = errors.New("the token does not permit it")

// LimitNews stands where news about a job has the job's name. News about it sets limits, so that only an admin may send it.
const LimitNews = "-limits"

// permissions returns what the server lets a role publish and subscribe; nil permits all. The first token of a subject is
// the cluster's space. A watcher has inboxes of its own, because answers to others pass through theirs.
func (r Role) permissions() *server.Permissions {
	switch r {
	case WorkRole:
		return &server.Permissions{Publish: &server.SubjectPermission{Deny: []string{"*." + newsKind + "." + LimitNews}}}
	case WatchRole:
		return &server.Permissions{
			Publish: &server.SubjectPermission{Allow: []string{"$JS.API.INFO", "$JS.API.STREAM.INFO.*"}},
			Subscribe: &server.SubjectPermission{Allow: []string{
				"*." + statusKind + ".>", "*." + doneKind + ".>", "*." + newsKind + ".>", "*." + keeperKind + ".>", r.inbox() + ".>",
			}},
		}
	case AdminRole:
	}
	return nil
}

// inbox returns the prefix of the role's inboxes.
func (r Role) inbox() string {
	if r == WatchRole {
		return "_INBOX_" + string(r)
	}
	return "_INBOX"
}

// checkPublish returns an error if the role does not permit a client to publish a message. The server drops such a message, and
// tells only the connection.
func (r Role) checkPublish(word, about string) error {
	if r == WatchRole || r == WorkRole && word == newsKind && about == LimitNews {
		return fmt.Errorf("%w: its role is %s", ErrRole, r)
	}
	return nil
}

// identityBytes is the number of hash bytes that name a hub.
const identityBytes = 6

// deriveSecret returns a secret that follows from another one for one purpose.
func deriveSecret(token, purpose string) []byte {
	m := hmac.New(sha256.New, []byte(token))
	m.Write([]byte("headrace " + purpose)) // it never fails
	return m.Sum(nil)
}

// roleToken returns the token of a role. It follows from the admin's token, so that hubs which share that one share all.
func roleToken(admin string, r Role) string {
	if r == AdminRole {
		return admin
	}
	return string(r) + "-" + identityOf(admin) + "-" + base64.RawURLEncoding.EncodeToString(deriveSecret(admin, string(r)))
}

// roleOf reads the role and the hub's name out of a token. A token without a role is an admin's.
func roleOf(token string) (r Role, hub string) {
	parts := strings.SplitN(token, "-", 3)
	for _, r := range []Role{WorkRole, WatchRole} {
		if len(parts) == 3 && parts[0] == string(r) && len(parts[1]) == 2*identityBytes {
			return r, parts[1]
		}
	}
	return AdminRole, ""
}

// identityOf returns the name of the hub that lets a token in.
func identityOf(token string) string {
	if token == "" {
		return ""
	}
	if _, hub := roleOf(token); hub != "" {
		return hub
	}
	return hex.EncodeToString(deriveSecret(token, "hub")[:identityBytes])
}

// A doorkeeper lets clients of a hub in by their tokens.
type doorkeeper struct{ token string }

// Check implements [server.Authentication].
func (d doorkeeper) Check(c server.ClientAuthentication) bool {
	for _, r := range Roles {
		if subtle.ConstantTimeCompare([]byte(c.GetOpts().Token), []byte(roleToken(d.token, r))) == 1 {
			c.RegisterUser(&server.User{Permissions: r.permissions()})
			return true
		}
	}
	return false
}

// Role returns what the token of this connection permits, as far as the client can tell.
func (b *Bus) Role() Role {
	r, _ := roleOf(b.address.Token)
	return r
}

// Identity returns the name of the bus; "" if it has none that lasts. Hubs that share a token are one bus. A server of
// somebody else is known by its cluster or by its configured name.
func (b *Bus) Identity() string {
	if id := identityOf(b.address.Token); id != "" {
		return id
	}
	name := b.nc.ConnectedClusterName()
	if server := b.nc.ConnectedServerName(); name == "" && server != b.nc.ConnectedServerId() { // else it is another one with each start
		name = server
	}
	return name
}
