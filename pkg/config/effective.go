package config

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/streamworker/streamworker/pkg/topology/yamlnode"
)

// YAML is the configuration with every key that it has, as it was read from file, environment and flags, defaults
// included and secrets hidden. Streams and tables are as the file has them.
func (c *Config) YAML() ([]byte, error) {
	var all yaml.MapSlice
	for _, f := range c.fields {
		switch {
		case isTopology(f.Path):
			if part := c.streams[f.Path]; part != nil {
				all = put(all, []string{f.Path}, part)
			}
		case len(f.Kinds) == 0 || strings.ContainsAny(f.Path, "[ ") || c.within(f.Path):
		case !empty(f.Value):
			all = put(all, strings.Split(f.Path, "."), f.Value)
		}
	}
	text, err := yaml.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("printing the configuration: %w", err)
	}
	return text, nil
}

func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case map[string]string:
		return len(v) == 0
	}
	return false
}

// JSON is YAML as JSON.
func (c *Config) JSON() ([]byte, error) {
	text, err := c.YAML()
	if err != nil {
		return nil, err
	}
	return yaml.YAMLToJSON(text)
}

// within tells whether a path is that of one of several texts of another one, which has them all.
func (c *Config) within(path string) bool {
	for _, f := range c.fields {
		if f.Is(yamlnode.Texts) && yamlnode.Under(path, f.Path) {
			return true
		}
	}
	return false
}

// put adds a value under a path of names, behind what is there.
func put(m yaml.MapSlice, path []string, value any) yaml.MapSlice {
	if len(path) == 1 {
		return append(m, yaml.MapItem{Key: path[0], Value: value})
	}
	for i, item := range m {
		if inner, ok := item.Value.(yaml.MapSlice); ok && item.Key == path[0] {
			m[i].Value = put(inner, path[1:], value)
			return m
		}
	}
	return append(m, yaml.MapItem{Key: path[0], Value: put(nil, path[1:], value)})
}

// isTopology tells whether a key holds what is to be computed.
func isTopology(path string) bool { return path == "streams" || path == "tables" }

// streamsOf are the streams and tables as the file has them, with aliases resolved.
func streamsOf(src []byte) map[string]any {
	var all yaml.MapSlice
	_ = yaml.UnmarshalWithOptions(src, &all, yaml.UseOrderedMap()) // it was parsed before
	out := make(map[string]any)
	for _, item := range all {
		if key, ok := item.Key.(string); ok && isTopology(key) {
			out[key] = item.Value
		}
	}
	return out
}
