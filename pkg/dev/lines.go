package dev

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/streamworker/streamworker/pkg/topology"
)

// Half of a line's words are common ones, the first of them the most common. The others are numbered pairs, of which
// there are so many that the counts have some size.
var (
	common = strings.Fields(`the of and to in is that it was for on with as at by from they have this are not or be one had word but what
		all were when we there can an your which said each she do how their if will up other about out many then them these so some her
		would make like him into time has look two more write go see number no way could people my than first water been call who oil its
		now find long down day did get come made may part`)
	left = strings.Fields(`amber ancient autumn birch bitter blue bright broken bronze calm cedar clear cloudy cold copper coral crimson
		dark dawn deep distant dusty early easy empty faint far fern fine frosty gentle golden grassy green grey hidden high hollow icy
		inner iron jade late light linen little lone lost low lucky lunar maple marble merry misty mossy narrow new noble north oaken
		olive open outer pale pine plain polar proud purple quick quiet rainy rapid red round ruby rustic sandy scarlet shady sharp silent
		silver simple slow small smoky snowy soft solar south spring steep stormy strong summer sunny swift tall`)
	right = strings.Fields(`acre anchor apple arch arrow bank barn basin bay beach bear bell bend bird boat bridge brook cabin canyon
		castle cave chapel cliff cloud coast corner cove creek crow deer delta dune eagle farm fawn feather fence field finch fjord flame
		flower forest fountain fox garden gate geyser glade grove hall harbor hare hawk heath hedge hill horse island lake lamp lane leaf
		ledge light lodge marsh meadow mill moon moor mountain oak orchard otter owl path peak pebble plain pond pool port rain reef ridge
		river road rock root rose sea shore sky spring star stone storm stream sun swan tower trail tree vale valley wall wave well wind
		wolf wood`)
)

// A line has so many words, and so many of them are pairs.
const (
	wordsPerLine = 8
	pairsPerLine = 4
	pairNumbers  = 9
)

// writer makes lines.
type writer struct {
	rnd  *rand.Rand
	zipf *rand.Zipf
	made int64
}

// newWriter returns one that writes the same text in each run.
func newWriter() *writer {
	rnd := rand.New(rand.NewPCG(1, 2))
	return &writer{rnd: rnd, zipf: rand.NewZipf(rnd, 1.3, 2, uint64(len(common)-1))}
}

// line returns the words of the next line, in lower case.
func (w *writer) line() []string {
	w.made++
	words := make([]string, wordsPerLine)
	for i := range words {
		if i%2 == 1 && i/2 < pairsPerLine {
			words[i] = fmt.Sprintf("%s-%s-%d", left[w.rnd.IntN(len(left))], right[w.rnd.IntN(len(right))], 1+w.rnd.IntN(pairNumbers))
		} else {
			words[i] = common[w.zipf.Uint64()]
		}
	}
	return words
}

// text is the line as it is written: its first letter is a capital.
func text(words []string) string {
	s := strings.Join(words, " ")
	return strings.ToUpper(s[:1]) + s[1:]
}

// encode writes a line in a format of the topology: text as it is, and otherwise what can be made of it. A key is the
// line's first pair, or its number modulo 1,000.
func (w *writer) encode(f topology.Format, words []string, key bool) []byte {
	number := w.made % 1000
	switch f {
	case topology.Int:
		return binary.BigEndian.AppendUint64(nil, uint64(number))
	case topology.Float:
		return binary.BigEndian.AppendUint64(nil, math.Float64bits(float64(number)))
	case topology.JSON:
		if key {
			return fmt.Appendf(nil, "%q", words[1])
		}
		b, err := json.Marshal(map[string]any{"text": text(words), "word": words[0], "pair": words[1], "number": number, "line": w.made})
		if err != nil {
			panic("dev: strings and integers can be written as JSON: " + err.Error())
		}
		return b
	default:
		if key {
			return []byte(words[1])
		}
		return []byte(text(words))
	}
}
