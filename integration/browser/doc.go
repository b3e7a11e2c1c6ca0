// Package browser looks at the dashboard in a real browser, while instances run against a Kafka in memory. It is a module
// of its own, so that the product does not depend on what drives a browser.
//
// `make browser` runs it; it needs Chromium or Chrome, and leaves screenshots in SCREENSHOTS (default: a directory that it
// names).
package browser
