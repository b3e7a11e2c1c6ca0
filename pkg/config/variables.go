package config

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// otherVariables begin with EnvPrefix and are no settings: those of this project's tests, and what Kubernetes tells pods of
// services whose names begin so.
var otherVariables = regexp.MustCompile(`^STREAMWORKER_((TEST|SIM)_\w+|SIZE|(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?))$`)

// checkVariables reports environment variables that were meant for a setting which does not exist. One that the file, src,
// refers to is none.
func (r *reader) checkVariables(src []byte, env func(string) (string, bool)) {
	if env == nil {
		return
	}
	var known []string
	for key := range descriptions {
		known = append(known, yamlnode.Variable("", key))
	}
	slices.Sort(known)
	for _, name := range slices.Sorted(slices.Values(r.o.Variables)) {
		setting, ours := strings.CutPrefix(name, EnvPrefix)
		if !ours || bytes.Contains(src, []byte("${"+name)) || slices.Contains(known, setting) || otherVariables.MatchString(name) {
			continue
		}
		if text, _ := env(name); text == "" { // counts as not set
			continue
		}
		hint := "unset it; the names are " + EnvPrefix + " and the key with _ for each dot, e.g. " + EnvPrefix + "KAFKA_BROKERS for kafka.brokers"
		if near := yamlnode.Nearest(setting, known); near != "" {
			hint = "did you mean " + EnvPrefix + near + "?"
		}
		r.file.Errorf(hint, "the environment variable %s stands for no setting", name)
	}
}
