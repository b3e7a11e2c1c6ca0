// Package harness runs the product as its users do, on a real Kafka: it starts and stops brokers and streamworker
// processes, loads the input at a rate while it keeps the exact table of what must come out, watches the output, and
// reads the figures of handovers from the processes' logs.
//
// The integration tests are made of it. What goes wrong in the harness itself fails the test at once.
package harness
