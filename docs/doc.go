// Package docs has no code, only tests of the documents beside it: what they link to, name and quote is there.
package docs
