// Package google proves to Google who sends a request, by tokens of the default credentials:
// the file that GOOGLE_APPLICATION_CREDENTIALS names, else what gcloud auth
// application-default login has left, else the machine's own account where there is one. They
// are found and turned into tokens by Google's own code; that a token is fresh, and that there
// is one refresh at a time, is [auth.Tokens]'s.
//
// It promises that no error has a key, a token or a signed assertion in it.
//
//	service account ─┐
//	user, gcloud ────┤                        ┌─────────────┐
//	federation ──────┼──▶ x/oauth2/google ──▶ │ auth.Tokens │ ──▶ Authorization: Bearer …
//	machine ─────────┘    (anew each time)    └─────────────┘
package google
