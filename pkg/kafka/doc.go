// Package kafka connects to a cluster: addresses, TLS, and who the client is.
//
// A [Connection] is the settings, a [Connector] gives Kafka clients their options. Files (certificates, passwords, tokens) are read
// anew for each connection, so that a rotated one needs no restart. What a broker refuses becomes an error that
// says what, where and what to do; [Reach] tells what waiting does not cure from what it may. No secret is part of
// any error, and a [Secret] hides itself wherever it is printed.
package kafka
