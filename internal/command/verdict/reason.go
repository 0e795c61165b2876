package verdict

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/printable"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/provider"
)

// A reason says, in the words that users see, why calls break or ended: one printable line
// without the key.
type reason struct {
	text  string
	cause error
}

func (r *reason) Error() string { return r.text }

// Unwrap gives the error for its kind; its own text must not be shown.
func (r *reason) Unwrap() error { return r.cause }

// maxReason is the length of the longest reason that is shown, in characters: two lines of a
// terminal.
const maxReason = 160

// ReasonOf says in one line why a call broke, or what stopped a model; "" for nil.
func ReasonOf(err error) string {
	var (
		known *reason
		w     *batch.WaitError
		alike *batch.AlikeError
		out   *batch.OutageError
		ruin  *machine.AccountError
		e     *provider.Error
	)
	switch {
	case err == nil:
		return ""
	case errors.As(err, &known):
		return known.text
	case errors.As(err, &ruin) && ruin.Shared():
		return "account " + ruin.Account + ": " + ReasonOf(ruin.Cause)
	case errors.As(err, &w):
		return waitReason(w)
	case errors.As(err, &alike):
		return alikeReason(alike)
	case errors.As(err, &out):
		return outageReason(out)
	case errors.Is(err, batch.ErrNoAnswer):
		return "no call was ever answered: " + causeOf(err)
	case errors.As(err, &e) && !isConnection(e):
		return Shown(answerReason(e))
	}
	return causeOf(err)
}

// isConnection reports whether a call failed before the server said anything.
func isConnection(e *provider.Error) bool { return e.Status == 0 && e.Message == "" && e.Code == "" }

// answerReason returns what the server said. It leaves out the message about a refused key, as that repeats a part of
// the key.
func answerReason(e *provider.Error) string {
	if e.Kind == provider.Unauthorized && (e.Status == http.StatusUnauthorized || strings.Contains(e.Message, "***")) {
		status := strconv.Itoa(e.Status)
		code := strings.TrimPrefix(e.Code, status) // Azure's is the status once more
		if strings.Contains(code, " ") {           // xAI's is a sentence, and about any argument
			code = ""
		}
		return strings.TrimSpace(e.Provider + " refuses the key: " + status + " " + code)
	}
	switch {
	case brokeOff(e):
		return fmt.Sprintf("%d, then %s", e.Status, exit.PlainText(provider.Plain(e.Err)))
	case e.Kind == provider.TransportFault && e.Status > 0:
		return fmt.Sprintf("%d with %s", e.Status, orEmptyBody(e.Message))
	case e.Kind == provider.Misfit && e.Message != "":
		return "schema: " + e.Message // the status is a good one
	case e.Kind == provider.Canceled && e.Message == "" && e.Err != nil:
		return exit.PlainText(e.Err)
	}
	return e.Error()
}

// brokeOff reports whether an answer began but its connection did not deliver all of it, as
// when a stream falls silent.
func brokeOff(e *provider.Error) bool {
	return e.Kind == provider.TransportFault && e.Status > 0 && e.Message == "" && e.Err != nil
}

func orEmptyBody(message string) string {
	if message == "" {
		return "an empty body"
	}
	return message
}

// causeOf returns the innermost cause: what the server said, or what became of the connection, without its address.
func causeOf(err error) string {
	var e *provider.Error
	if errors.As(err, &e) && !isConnection(e) {
		return Shown(answerReason(e))
	}
	return Shown(exit.PlainText(provider.Plain(err)))
}

// waitReason describes a wait that is too long: who asks for it, and when it ends.
func waitReason(w *batch.WaitError) string {
	until := fmt.Sprintf("%s, until %s", words.Wait(w.Wait), timeText(w.Until, w.Wait))
	var used *batch.UsedUpError
	if errors.As(w.Cause, &used) {
		return fmt.Sprintf("%v: the provider's headers say that they are renewed in %s", used, until)
	}
	text := "the provider asks to wait for " + until
	if e := FaultOf(w.Cause); e != nil {
		text += fmt.Sprintf(" (%s)", Shown(answerReason(e)))
	}
	return text + fmt.Sprintf("; a run waits %s at most", words.Wait(w.Most))
}

// alikeReason describes what went wrong in the same way for all items that were asked.
func alikeReason(a *batch.AlikeError) string {
	var misfits *batch.MisfitsError
	if errors.As(a.Cause, &misfits) {
		return fmt.Sprintf("none of the first %d answers fits the schema: %s", misfits.Answers, ReasonOf(misfits.Cause))
	}
	verb := "were refused"
	if e := FaultOf(a.Cause); e != nil && e.Kind.BreakerCounts() {
		verb = "failed"
	}
	return fmt.Sprintf("%s %s alike: %s; nothing was answered", words.Count(a.Items, "item"), verb, ReasonOf(a.Cause))
}

// outageReason says since when nothing was answered, and how many items wait.
func outageReason(o *batch.OutageError) string {
	text := fmt.Sprintf("nothing has been answered since %s, and %s", timeText(o.Since, -o.For), words.Count(o.Waiting, "item"))
	if o.Waiting == 1 {
		text += " waits"
	} else {
		text += " wait"
	}
	if o.Cause != nil {
		text += ": " + ReasonOf(o.Cause)
	}
	return text
}

// timeText shows a time of day, with its date if that is another day's.
func timeText(at time.Time, ahead time.Duration) string {
	if at.YearDay() == at.Add(-ahead).YearDay() {
		return at.Format(time.TimeOnly)
	}
	return at.Format(time.DateTime)
}

// Shown returns a foreign text as one printable line of bounded length.
func Shown(s string) string { return words.Clip(printable.Line(s), maxReason) }

// whatToCheck returns what a user may check where no call is answered, by the usual causes.
func whatToCheck(err error) string {
	var redirect *provider.RedirectError
	switch e := FaultOf(err); {
	case e == nil:
	case errors.As(err, &redirect) && redirect.Foreign:
		return "if you trust that address, use it as --base-url"
	case errors.As(err, &redirect):
		return "check --base-url: the address answers, but is not the API, whose path often ends in /v1"
	case e.Kind == provider.Timeout:
		return "raise --timeout, or check --base-url"
	case e.Kind == provider.Misconfigured && e.Status == http.StatusBadRequest:
		return "try https:// in --base-url: the server does not speak http there"
	case e.Status == http.StatusForbidden:
		return "check --base-url and the network: this answer is not the provider's, but from a firewall or proxy on the way"
	case e.Status/100 == 5 || e.Kind == provider.Server:
		return "check whether the provider is down, and check --base-url"
	case brokeOff(e):
		return "answers break off or cannot be read: check --base-url, the server and the proxies before it; --stream-idle bounds the silence of a stream"
	case e.Status/100 == 2:
		return "check --base-url: the address answers, but is not the API, whose path often ends in /v1"
	}
	return connectionToCheck(err)
}

// connectionToCheck returns what to check if no connection came about, by the cause in err.
func connectionToCheck(err error) string {
	var (
		op     *net.OpError
		dns    *net.DNSError
		record tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &op) && op.Op == "proxyconnect":
		return "check the proxy in HTTPS_PROXY or HTTP_PROXY; NO_PROXY exempts a host"
	case errors.As(err, &dns):
		return fmt.Sprintf("check --base-url and the network: %s is not found", Shown(dns.Name))
	case errors.Is(err, syscall.ECONNREFUSED):
		return "check --base-url, and that the server runs: nobody listens there"
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return "try http:// in --base-url: the server does not speak https there"
	}
	if wantsCertificate(err) {
		return "the server wants a certificate that it trusts: check --client-cert and --client-key"
	}
	if text := certificateToCheck(err); text != "" {
		return text
	}
	return "check --base-url and the network" + plainHTTPToCheck(err)
}

// plainHTTPToCheck returns what to try where a server may want https. Such a server hangs up, or answers with a TLS
// alert.
func plainHTTPToCheck(err error) string {
	var u *url.Error
	if !errors.As(err, &u) || !strings.HasPrefix(u.URL, "http://") {
		return ""
	}
	if strings.Contains(u.Err.Error(), `malformed HTTP response "\x15\x03`) {
		return "; try https:// in --base-url: the server does not speak http there"
	}
	if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) {
		return "; if the server speaks https, try https:// in --base-url"
	}
	return ""
}

// wantsCertificate reports whether the server has refused the client's certificate, or wants one that is missing. It
// compares texts, as crypto/tls has no type for such an alert.
func wantsCertificate(err error) bool {
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "remote error" {
		return false
	}
	for _, alert := range []string{"certificate required", "bad certificate", "unknown certificate", "unsupported certificate", "expired certificate", "revoked certificate", "unknown certificate authority"} {
		if strings.HasSuffix(op.Err.Error(), alert) {
			return true
		}
	}
	return false
}

// certificateToCheck returns what to check if the server's certificate was refused; "" if err has another cause.
func certificateToCheck(err error) string {
	var (
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		unproven  *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &authority):
		return "check --base-url; if you trust the certificate, name the file of its authority with --ca-file"
	case errors.As(err, &host):
		return "check the host in --base-url: the certificate is for another host"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the certificate has expired, or the clock here is wrong: check both"
	case errors.As(err, &unproven):
		return "check --base-url and the certificate (--ca-file names authorities to trust)"
	}
	return ""
}

// Reason is ReasonOf without the key; nil for nil.
func (f *Facts) Reason(err error) error {
	if err == nil {
		return nil
	}
	return &reason{f.Redact(ReasonOf(err)), err}
}
