// Package google proves to Google who sends a request, by tokens of the default credentials.
// These are in the file that GOOGLE_APPLICATION_CREDENTIALS names, else in the one that gcloud
// auth application-default login has left. Else they are the machine's own account, where there
// is one. Google's own code finds them and turns them into tokens. [auth.Tokens] keeps a token
// fresh, and makes one refresh at a time.
//
// It promises that no error has a key, a token or a signed assertion in it.
//
//	service account ─┐
//	user, gcloud ────┤                        ┌─────────────┐
//	federation ──────┼──▶ x/oauth2/google ──▶ │ auth.Tokens │ ──▶ Authorization: Bearer …
//	machine ─────────┘    (anew each time)    └─────────────┘
package google
