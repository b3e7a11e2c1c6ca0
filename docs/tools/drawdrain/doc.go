// Command drawdrain draws how the tasks of an application moved, as an SVG on standard output:
//
//	drawdrain SAMPLES LOG...
//
// SAMPLES has one line per look at the group: the time in ms since the epoch, a blank, and what `status -o json`
// printed, on one line. Each LOG is what an instance wrote with log.format json; from it come the moments of
// the handovers with their gaps, which are shorter than the time between two samples.
//
// The picture begins a second before an instance was marked as leaving and ends a second after the last handover.
package main
