package handover

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/streamworker/streamworker/pkg/group/assign"
)

// Token is what a release leaves in the committed offset's metadata: under which order the task was
// released, and how far each changelog must be applied before the task may run elsewhere.
type Token struct {
	Release   assign.ReleaseID
	Positions []int64 // per store of the task, in the topology's order: the next offset of its changelog
	// Stores tells which stores these are, as the owner's topology has them: instances may run two versions of a file while it is
	// rolled out. 0: the owner did not say, or there are none.
	Stores uint32
	// LastProcessedUs is when the owner processed its last record, in microseconds since the epoch by its
	// own clock; 0: it never did. The taker computes the gap from it; nothing else depends on it.
	LastProcessedUs int64
}

// Metadata is what streamworker writes into the metadata of every offset that it commits.
type Metadata struct {
	Committer string // member id
	// After is the release that the task last changed hands by; zero: none is known. Every owner hands it on,
	// so that the one who made that release can tell that it was written, though its token is gone.
	After assign.ReleaseID
	Token *Token // set on a release, which then counts instead of After
}

// LastRelease is the last release of the task that the offset includes; zero: none is known.
func (m Metadata) LastRelease() assign.ReleaseID {
	if m.Token != nil {
		return m.Token.Release
	}
	return m.After
}

// ErrForeignMetadata is returned for metadata that streamworker did not write, such as that of a group
// of plain consumers that is being upgraded. The offset beside it is good.
var ErrForeignMetadata = errors.New("offset metadata was not written by streamworker")

const metadataVersion = "sw1"

// String is the form stored in Kafka: "sw1 <committer>", or "sw1 <committer> <generation> <owner>" after a
// release, and for a release itself "sw1 <committer> <generation> <position,...> <last processed> <owner> <stores>". Kafka bounds it by offset.metadata.max.bytes (4096).
func (m Metadata) String() string {
	switch {
	case m.Token != nil:
	case m.After == assign.ReleaseID{}:
		return metadataVersion + " " + escape(m.Committer)
	default:
		return fmt.Sprintf("%s %s %d %s", metadataVersion, escape(m.Committer), m.After.Generation, escape(m.After.Owner))
	}
	pos := make([]string, len(m.Token.Positions))
	for i, p := range m.Token.Positions {
		pos[i] = strconv.FormatInt(p, 10)
	}
	list := strings.Join(pos, ",")
	if list == "" {
		list = "-"
	}
	text := fmt.Sprintf("%s %s %d %s %d %s", metadataVersion, escape(m.Committer), m.Token.Release.Generation, list,
		m.Token.LastProcessedUs, escape(m.Token.Release.Owner))
	if m.Token.Stores != 0 {
		text += " " + strconv.FormatUint(uint64(m.Token.Stores), 16)
	}
	return text
}

// ParseMetadata reads what String wrote, here or in a later build, which may have put more words behind those of a release: these are
// left unread. Anything else gives ErrForeignMetadata.
func ParseMetadata(s string) (Metadata, error) {
	f := strings.Split(s, " ")
	if len(f) < 2 || f[0] != metadataVersion || len(f) != 2 && len(f) != 4 && len(f) < 6 {
		return Metadata{}, fmt.Errorf("%w: %.60q", ErrForeignMetadata, s)
	}
	m := Metadata{Committer: unescape(f[1])}
	if len(f) == 2 {
		return m, nil
	}
	gen, err := strconv.ParseInt(f[2], 10, 32)
	if err != nil {
		return Metadata{}, fmt.Errorf("%w: generation %q", ErrForeignMetadata, f[2])
	}
	if len(f) == 4 {
		m.After = assign.ReleaseID{Generation: int32(gen), Owner: unescape(f[3])}
		return m, nil
	}
	last, err := strconv.ParseInt(f[4], 10, 64)
	if err != nil {
		return Metadata{}, fmt.Errorf("%w: time %q", ErrForeignMetadata, f[4])
	}
	t := &Token{Release: assign.ReleaseID{Generation: int32(gen), Owner: unescape(f[5])}, LastProcessedUs: last}
	if len(f) > 6 {
		stores, err := strconv.ParseUint(f[6], 16, 32)
		if err != nil {
			return Metadata{}, fmt.Errorf("%w: stores %q", ErrForeignMetadata, f[6])
		}
		t.Stores = uint32(stores)
	}
	if f[3] != "-" {
		for p := range strings.SplitSeq(f[3], ",") {
			n, err := strconv.ParseInt(p, 10, 64)
			if err != nil || n < 0 {
				return Metadata{}, fmt.Errorf("%w: position %q", ErrForeignMetadata, p)
			}
			t.Positions = append(t.Positions, n)
		}
	}
	m.Token = t
	return m, nil
}

// Member ids hold a client id, which may contain spaces.
var (
	escaper   = strings.NewReplacer("%", "%25", " ", "%20")
	unescaper = strings.NewReplacer("%20", " ", "%25", "%")
)

func escape(s string) string {
	if s == "" {
		return "%"
	}
	return escaper.Replace(s)
}

func unescape(s string) string {
	if s == "%" {
		return ""
	}
	return unescaper.Replace(s)
}
