// Package topics creates and checks the Kafka topics of an application.
//
// Input topics belong to the user: [Describe] tells their partition counts. Internal topics (changelogs,
// repartition topics, the control topic) belong to the application: [Ensure] creates what is missing, or only
// checks when the user creates them, and tells what the rest needs to know of them. Several instances may do so at
// the same time. Every problem is an error that names the topic and the remedy; all problems of one call are
// reported together.
package topics
