package format

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// fieldError places an error in a value.
type fieldError struct {
	path string // e.g. "items[2].price"
	err  error
}

func (e *fieldError) Error() string { return fmt.Sprintf("field %s: %v", e.path, e.err) }
func (e *fieldError) Unwrap() error { return e.err }

// inField says in which field err happened; inElement in which element of a list.
func inField(name string, err error) error { return within(name, err) }

func inElement(i int, err error) error { return within("["+strconv.Itoa(i)+"]", err) }

// within puts a name before the path that err has already. Registries that cannot be reached have no place in a value.
func within(name string, err error) error {
	var inner *fieldError
	if !errors.As(err, &inner) {
		return &fieldError{path: name, err: err}
	}
	if !strings.HasPrefix(inner.path, "[") {
		name += "."
	}
	inner.path = name + inner.path
	return inner
}
