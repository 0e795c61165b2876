package settings

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/headrace/headrace/internal/command/exit"
)

// NetworkFlags say how this machine reaches the provider.
type NetworkFlags struct {
	headers               headerTexts
	Added                 []AddedHeader // headers, as they were read
	CaFile                string
	ClientCert, ClientKey string
	Through               string // the address of headrace serve; "": calls go to the provider
	Share                 bool   // go through one that has the same key, if there is one
}

// registerNetwork registers the flags about the way to the provider.
func (f *NetworkFlags) registerNetwork(fs *pflag.FlagSet) {
	fs.Var(&f.headers, "header", "header of every call, such as HTTP-Referer=https://example.com; repeatable. A secret is in a variable or a file: x-portkey-api-key=env:PORTKEY_API_KEY or =file:PATH (see headrace help network)")
	fs.StringVar(&f.CaFile, "ca-file", "", "certificates (PEM) of authorities to trust in addition to the system's, such as a company's own")
	fs.StringVar(&f.ClientCert, "client-cert", "", "certificate (PEM) that is shown to servers that ask for one")
	fs.StringVar(&f.ClientKey, "client-key", "", "private key (PEM) of --client-cert")
	fs.StringVar(&f.Through, "through", "", "let headrace serve at this address pace the calls, in one line with those of other programs: http://127.0.0.1:8470 or unix:PATH")
	fs.BoolVar(&f.Share, "share", false, "let a headrace serve on this machine that has the same key pace the calls; where there is none, call the provider")
	NameValues(fs, map[string]string{"ca-file": "FILE", "client-cert": "FILE", "client-key": "FILE", "through": "ADDRESS"})
}

// ofServe are flags that headrace serve has in place of a run through it.
var ofServe = strings.Fields("base-url region project location resource preset header rpm tpm input-tpm output-tpm burst latency-target law timeout")

// SocketPrefix begins the address of a unix socket.
const SocketPrefix = "unix:"

// goThrough checks --through and --share. It leaves to headrace serve what serve decides, and refuses flags
// about that.
func (f *Flags) goThrough() error {
	if f.Share {
		return f.checkShare()
	}
	if f.Through == "" {
		return nil
	}
	if strings.HasPrefix(f.Through, "http") { // the variable for clients, which serve prints, names the folder of the paths
		f.Through = strings.TrimSuffix(strings.TrimRight(f.Through, "/"), "/v1")
	}
	address, err := url.Parse(f.Through)
	socket, isSocket := strings.CutPrefix(f.Through, SocketPrefix)
	switch {
	case isSocket && socket != "":
	case isSocket || err != nil || address.Scheme != "http" && address.Scheme != "https" || address.Host == "" || address.User != nil || strings.Trim(address.Path, "/") != "" || address.RawQuery != "":
		return fmt.Errorf("--through %q is not an address of headrace serve: want http://127.0.0.1:8470 or unix:PATH", exit.WithoutKeys(f.Through))
	}
	var given []string
	for _, name := range ofServe {
		if f.All.Changed(name) {
			given = append(given, name)
		}
	}
	switch {
	case len(given) > 0:
		return fmt.Errorf("%s: with --through, headrace serve decides that: give it there", Dashed(given))
	case f.Fleet != nil:
		return fmt.Errorf("%s:%d: lanes are given, and with --through headrace serve has them: give the file there", f.Config, f.Fleet.Line)
	case f.Provider == ProviderSim:
		return errors.New("--provider sim calls nothing, so nothing goes --through: remove one of the two")
	case f.ServiceTier == TierAuto:
		return errors.New("--service-tier auto: not with --through: use flex or standard")
	case f.Cluster != "":
		return errors.New("--through: only for runs on one machine: remove it")
	}
	f.Law, f.Timeout = LawNone, 0 // serve has both
	return nil
}

// checkShare refuses --share together with flags under which no call could go through headrace serve.
func (f *Flags) checkShare() error {
	switch {
	case f.Through != "":
		return errors.New("--share finds headrace serve by the key, and --through names it: remove one of the two")
	case f.Fleet != nil:
		return fmt.Errorf("%s:%d: lanes are given, and --share is for the key of one provider: remove one of the two", f.Config, f.Fleet.Line)
	case f.Provider == ProviderSim:
		return errors.New("--provider sim calls nothing, so there is nothing to --share: remove one of the two")
	case f.ServiceTier == TierAuto:
		return errors.New("--service-tier auto: not with --share: use flex or standard")
	case f.Cluster != "":
		return errors.New("--share: only for runs on one machine: remove it")
	}
	return nil
}

// GoThrough has calls go through headrace serve at an address, which --share has found. Serve has its own limits, law and
// timeout: those of the flags are for calls to the provider.
func (f *Flags) GoThrough(at string) {
	f.Through, f.Law, f.Timeout = at, LawNone, 0
	f.rpm, f.tpm, f.inputTPM, f.outputTPM, f.LatencyTarget = 0, 0, 0, 0, 0
}

// checkNetwork refuses a certificate without its key, and a key without its certificate.
func (f *NetworkFlags) checkNetwork() error {
	switch {
	case f.ClientCert != "" && f.ClientKey == "":
		return errors.New("--client-cert needs --client-key: the file with its private key")
	case f.ClientKey != "" && f.ClientCert == "":
		return errors.New("--client-key needs --client-cert: the file with its certificate")
	}
	return nil
}

// NewNetworkTopic explains how calls reach the provider. It is not a command: "headrace help
// network" shows it.
func NewNetworkTopic() *cobra.Command {
	return &cobra.Command{Use: "network", Short: "Proxies, certificates, headers, HTTP/2 and timeouts", Long: networkHelp}
}

const networkHelp = `How calls reach the provider. Each flag may also be a line in the file of
--config, or a variable: HEADRACE_CA_FILE for --ca-file.

Proxies
  HTTPS_PROXY   the proxy for https:// addresses. Its address may have a user
                and a password: http://USER:PASSWORD@proxy.example:3128. In a
                password write % as %25, @ as %40 and / as %2F.
  HTTP_PROXY    the proxy for http:// addresses
  NO_PROXY      hosts, domains and networks that are called directly, separated
                by commas: gpu.lan,.example.com,10.0.0.0/8
  The names may be in small letters. The proxy itself may speak http, https or
  socks5. This machine is never called through a proxy. An address that is not
  one of a proxy ends the command with exit code 2.

Certificates
  --ca-file FILE       authorities that are trusted in addition to the
                       system's: a company's own, or that of a proxy which
                       reads https. The file is in PEM form and may have
                       several. It counts for the fetching of Google's tokens,
                       too. On Linux, SSL_CERT_FILE replaces the system's.
  --client-cert FILE   certificate that is shown to a server that asks for one,
                       with those of its issuers below it
  --client-key FILE    private key of that certificate, not encrypted
  A file that is missing or wrong ends the command with exit code 2, before any
  call.

Headers
  --header NAME=VALUE  adds a header to every call. The flag is repeatable;
                       HEADRACE_HEADER has one header a line, and the file of
                       --config has a section:

                         headers:
                           HTTP-Referer: https://example.com
                           anthropic-beta: context-1m-2025-08-07
                           x-portkey-api-key: env:PORTKEY_API_KEY
                           Helicone-Auth: Bearer env:HELICONE_API_KEY

  Secrets come only from a variable (env:NAME) or a file (file:PATH, which is
  read again when it changes). They are removed from errors, logs and results
  like the key. Those that are short, a plain word or a number are not, as
  answers may have them by chance; a notice says so. A value that is written
  out is refused if
    - a word of the header's name is key, auth, or ends in apikey, token,
      secret, password, authorization, credential(s) or cookie, or
    - it is JSON with such a name in it, begins with Bearer, Basic, Token,
      ApiKey or eyJ, or has a known form of a key in it, such as sk-….
  A header that carries the provider's key (Authorization, x-api-key, api-key,
  x-goog-api-key, x-amz-date, x-amz-security-token) needs --api-key-env none:
  then no key is sent and nothing is signed.
  Headers that would break calls are refused: those of the body (Content-Type,
  Content-Length, Content-Encoding), of the connection (Connection, Keep-Alive,
  Proxy-Connection, Transfer-Encoding, TE, Trailer, Upgrade, HTTP2-Settings,
  Expect), Host, Accept-Encoding, Proxy-Authorization and Idempotency-Key.
  User-Agent is headrace/VERSION unless you set another. Headers follow a
  redirect on the same host, and none to another. Other headers make no other
  items: what was answered is not asked again. A signature for AWS covers
  x-amz-… headers; others are sent unsigned.

HTTP/2
  A server that offers HTTP/2 over https gets it, also through a proxy: many
  calls share a connection. A connection on which nothing arrives is tested,
  and calls on a dead one are tried again. Over http:// calls use HTTP/1.1.

Timeouts
  --timeout D       one call, from sending to the end of its answer, or to the
                    first byte if the answer is a stream (--stream); waiting to
                    be sent does not count
  --stream-idle D   the silence of a stream after its first byte
  --item-timeout D  one item, with all its attempts
  --deadline D      the run
  Connecting may take 10 s, and so may the TLS handshake. --first-answer and
  --outage-patience say when a run stops that gets no answers.

Keys without encryption
  Over http:// the key in a provider's usual variable, and secrets of --header,
  are not sent to the provider's own hosts, unless --insecure-http is given.
  This machine may be called over http://. A server of your own gets over
  http:// what you name for it, and a notice says that it is not encrypted.`
