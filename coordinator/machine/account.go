package machine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// This file is about lanes that draw on one account: when its money is gone, or its key refused,
// none of them is of use.
//
//	refused for good, about the account ──▶ each lane of it stops ──▶ so does one that is made later
//	reset of one of them by hand ──▶ that one flows, and so does one that is made later
//	refused after that, by a call that left before ──▶ only the lane of that call stops

// account holds the known lanes of an account.
type account struct {
	name  string
	lanes []*lane
	cause *AccountError // why it is of no use; nil: it may be

	resetAt time.Time // when a person did so by a reset of one of its lanes; zero: never
}

// joinAccount puts a lane into the account that its config names, so that they share their fate. It
// first leaves any other account.
func (m *Machine) joinAccount(l *lane) {
	name := l.cfg.Account
	if l.account != nil && l.account.name == name {
		return
	}
	m.leaveAccount(l)
	if name == "" {
		return
	}
	if m.accounts == nil {
		m.accounts = map[string]*account{}
	}
	a := m.accounts[name]
	if a == nil {
		a = &account{name: name}
		m.accounts[name] = a
	}
	a.lanes = append(a.lanes, l)
	l.account = a
}

// leaveAccount removes a lane from its account. An account without lanes is forgotten, together
// with the cause that made it useless.
func (m *Machine) leaveAccount(l *lane) {
	a := l.account
	if a == nil {
		return
	}
	l.account = nil
	if a.lanes = slices.DeleteFunc(a.lanes, func(x *lane) bool { return x == l }); len(a.lanes) == 0 {
		delete(m.accounts, a.name)
	}
}

// stopLaneOrAccount stops a lane after a refusal, and all lanes of its account if the refusal
// concerns the whole account. It stops the lane alone if a person has reset the account since the
// refused call was sent.
func (m *Machine) stopLaneOrAccount(now time.Time, l *lane, wholeAccount bool, sent time.Time, cause error) {
	a := l.account
	if a == nil || !wholeAccount || sent.Before(a.resetAt) {
		m.stop(now, l, cause)
		return
	}
	a.cause = &AccountError{Account: a.name, Lane: l.name, Cause: cmp.Or(cause, ErrLaneStopped)}
	for _, other := range slices.Clone(a.lanes) {
		m.stop(now, other, a.cause)
		other.cause = a.cause // also if it had stopped by itself, which another run might try again
	}
}

// stopWithAccount stops a lane whose account is already known to be of no use.
func (m *Machine) stopWithAccount(now time.Time, l *lane) {
	if a := l.account; a != nil && a.cause != nil {
		m.stop(now, l, a.cause)
		l.cause = a.cause // also if it had stopped by itself
	}
}

// accountToReport returns the name of the account that stops the lane; "": it does not, or has none.
func (l *lane) accountToReport(to Phase) string {
	if to != Stopped || l.account == nil || l.account.cause == nil {
		return ""
	}
	return l.account.name
}

// vouch clears the cause that made an account useless: a person has reset one of its lanes.
func (m *Machine) vouch(now time.Time, lane string) {
	if a := m.accounts[m.laneConfig(lane).Account]; a != nil {
		a.cause, a.resetAt = nil, now
	}
}

// An AccountError says that a lane has stopped because its account is of no use: its money is
// gone, or its key refused.
type AccountError struct {
	Account string
	Lane    string // whose call was refused
	Cause   error  // the server's error
}

func (e *AccountError) Error() string {
	return fmt.Sprintf("account %s: %v", e.Account, e.Cause)
}

// Shared reports whether the account has a name of its own, and not just that of the lane.
func (e *AccountError) Shared() bool {
	name, _, _ := strings.Cut(e.Lane, "/")
	return e.Account != e.Lane && e.Account != name
}

// Unwrap returns the server's error.
func (e *AccountError) Unwrap() error { return e.Cause }
