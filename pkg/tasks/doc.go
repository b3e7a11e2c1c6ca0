// Package tasks runs the tasks of one instance: active tasks that process, learners and standbys that
// replay changelogs, and the manager that reconciles what runs with the latest plan.
package tasks
