package format

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// Column is one column of a CSV line.
type Column struct {
	Name string
	Type string // one of ColumnTypes
}

// ColumnTypes are the types that a column can have: text, a 64-bit whole number, a number, true or false.
var ColumnTypes = []string{"string", "int", "float", "bool"}

// CSV reads and writes one line of comma-separated values (RFC 4180) as an object with a field for each column. An
// empty field is null, unless the column is text.
type CSV struct {
	columns   []Column
	delimiter rune
}

// NewCSV returns a codec for lines of these columns.
func NewCSV(columns []Column, delimiter rune) (*CSV, error) {
	if len(columns) == 0 {
		return nil, errors.New("csv has no columns")
	}
	seen := make(map[string]bool, len(columns))
	for _, c := range columns {
		switch {
		case c.Name == "":
			return nil, errors.New("a column has no name")
		case seen[c.Name]:
			return nil, fmt.Errorf("a second column is called %q", c.Name)
		case !columnType(c.Type):
			return nil, fmt.Errorf("column %s: there is no type %q", c.Name, c.Type)
		}
		seen[c.Name] = true
	}
	if delimiter == '"' || delimiter == '\r' || delimiter == '\n' || delimiter == 0 || !utf8.ValidRune(delimiter) || delimiter == utf8.RuneError {
		return nil, fmt.Errorf("%q cannot be a delimiter", delimiter)
	}
	return &CSV{columns: columns, delimiter: delimiter}, nil
}

func columnType(name string) bool {
	for _, t := range ColumnTypes {
		if t == name {
			return true
		}
	}
	return false
}

func (c *CSV) String() string {
	parts := make([]string, len(c.columns))
	for i, column := range c.columns {
		parts[i] = column.Name + " " + column.Type
	}
	text := "csv of " + strings.Join(parts, ", ")
	if c.delimiter != ',' {
		text += fmt.Sprintf(", delimiter %q", c.delimiter)
	}
	return text
}

// Decode reads one line; a line break at its end is allowed.
func (c *CSV) Decode(raw []byte) (any, error) {
	out := make(map[string]any, len(c.columns))
	line, n := csvLine{rest: unsafe.String(unsafe.SliceData(raw), len(raw)), delimiter: string(c.delimiter)}, 0
	for more := true; more; n++ {
		var field string
		var err error
		if field, more, err = line.field(); err != nil {
			return nil, fmt.Errorf("not valid CSV: field %d: %w", n+1, err)
		}
		if n >= len(c.columns) {
			continue
		}
		column := c.columns[n]
		if out[column.Name], err = column.parse(field); err != nil {
			return nil, fmt.Errorf("column %s: %w", column.Name, err)
		}
	}
	if n != len(c.columns) {
		return nil, fmt.Errorf("csv has %d columns, got %d", len(c.columns), n)
	}
	return out, nil
}

// csvLine is what is left of a line.
type csvLine struct{ rest, delimiter string }

var (
	errQuote    = errors.New("a quote stands where none may: put the field in quotes, and write each quote in it twice")
	errUnclosed = errors.New("the quote that opens it is not closed")
	errLines    = errors.New("a line break stands outside of quotes: one record is one line")
)

// field takes the next field, and says whether there is another one behind it.
func (l *csvLine) field() (text string, more bool, err error) {
	if strings.HasPrefix(l.rest, `"`) {
		if text, err = l.unquote(); err != nil {
			return "", false, err
		}
		if !strings.HasPrefix(l.rest, l.delimiter) {
			return text, false, l.end(errQuote)
		}
		l.rest = l.rest[len(l.delimiter):]
		return text, true, nil
	}
	text, after, more := strings.Cut(l.rest, l.delimiter)
	if l.rest = after; !more {
		text = trimBreak(text)
	}
	switch {
	case strings.Contains(text, "\n"):
		err = errLines
	case strings.Contains(text, `"`):
		err = errQuote
	}
	return text, more, err
}

// unquote takes a field in quotes.
func (l *csvLine) unquote() (string, error) {
	var b strings.Builder // of a field with quotes in it
	for rest := l.rest[1:]; ; {
		part, after, closed := strings.Cut(rest, `"`)
		if !closed {
			return "", errUnclosed
		}
		if !strings.HasPrefix(after, `"`) {
			l.rest = after
			if b.Len() == 0 {
				return part, nil
			}
			b.WriteString(part)
			return b.String(), nil
		}
		b.WriteString(part)
		b.WriteByte('"')
		rest = after[1:]
	}
}

// end reports what stands behind the last field, other than a line break.
func (l *csvLine) end(err error) error {
	switch rest := trimBreak(l.rest); {
	case rest == "":
		return nil
	case rest != l.rest || strings.HasPrefix(rest, "\n") || strings.HasPrefix(rest, "\r\n"):
		return errLines
	default:
		return err
	}
}

func trimBreak(s string) string {
	if before, ok := strings.CutSuffix(s, "\n"); ok {
		return strings.TrimSuffix(before, "\r")
	}
	return s
}

func (c Column) parse(text string) (any, error) {
	if c.Type == "string" {
		return text, nil
	}
	if text = strings.TrimSpace(text); text == "" {
		return nil, nil
	}
	switch c.Type {
	case "int":
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s is no int of 64 bits", Describe(text))
		}
		return int(n), nil
	case "float":
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("%s is no float of 64 bits", Describe(text))
		}
		return f, nil
	default:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return nil, fmt.Errorf("%s is no bool", Describe(text))
		}
		return b, nil
	}
}

// Append writes v, an object with fields called as the columns. A field that is absent or null is written as nothing.
func (c *CSV) Append(b []byte, v any) ([]byte, error) {
	object, ok := v.(map[string]any)
	if !ok {
		return b, mismatch("an object with the fields of the columns", v)
	}
	known := 0
	for i, column := range c.columns {
		if i > 0 {
			b = utf8.AppendRune(b, c.delimiter)
		}
		value, there := object[column.Name]
		if there {
			known++
		}
		var err error
		if b, err = c.appendField(b, column, value); err != nil {
			return b, fmt.Errorf("column %s: %w", column.Name, err)
		}
	}
	if known < len(object) {
		return b, fmt.Errorf("there is no column %s", c.unknown(object))
	}
	return b, nil
}

// unknown is the first field by name that no column has.
func (c *CSV) unknown(object map[string]any) string {
	least := ""
	for name := range object {
		known := false
		for _, column := range c.columns {
			known = known || column.Name == name
		}
		if !known && (least == "" || name < least) {
			least = name
		}
	}
	return strconv.Quote(least)
}

func (c *CSV) appendField(b []byte, column Column, v any) ([]byte, error) {
	if v == nil {
		return b, nil
	}
	switch column.Type {
	case "string":
		if s, ok := v.(string); ok {
			return c.appendText(b, s), nil
		}
	case "int":
		if n, ok := whole(v); ok {
			return c.appendNumber(b, strconv.FormatInt(n, 10)), nil
		}
	case "float":
		if f, ok := real(v); ok {
			return c.appendNumber(b, strconv.FormatFloat(f, 'g', -1, 64)), nil
		}
	default:
		if t, ok := v.(bool); ok {
			return c.appendNumber(b, strconv.FormatBool(t)), nil
		}
	}
	return b, mismatch(column.Type, v)
}

// appendNumber quotes what holds the delimiter, should that be a sign, a letter or a digit.
func (c *CSV) appendNumber(b []byte, text string) []byte {
	if strings.ContainsRune(text, c.delimiter) {
		return c.quoted(b, text)
	}
	return append(b, text...)
}

func (c *CSV) appendText(b []byte, s string) []byte {
	if strings.ContainsRune(s, c.delimiter) || strings.ContainsAny(s, "\"\r\n") {
		return c.quoted(b, s)
	}
	return append(b, s...)
}

func (c *CSV) quoted(b []byte, s string) []byte {
	b = append(b, '"')
	for i := range len(s) {
		if s[i] == '"' {
			b = append(b, '"')
		}
		b = append(b, s[i])
	}
	return append(b, '"')
}
