// Package dashboard shows a group in a browser: instances and tasks, learners, handovers, what is wrong, and the
// topology. It shows what the instances' statuses say, as the command status does. The pages are plain files in web,
// embedded, and load nothing from elsewhere; they ask for one JSON document a second, which is made at most twice a second
// however many look at it.
//
// It decides nothing about who may look: that is for the server that it is part of.
package dashboard
