package topology

// Graph is the topology as nodes and arrows, for those who draw it. Topics are shared by all subtopologies.
type Graph struct {
	Subtopologies []GraphPart `json:"subtopologies"`
	Topics        []GraphNode `json:"topics"`
	Edges         []GraphEdge `json:"edges"`
}

// GraphPart is a subtopology; each of its partitions is a task.
type GraphPart struct {
	ID       int32       `json:"id"`
	Stateful bool        `json:"stateful"`
	Steps    []GraphNode `json:"steps"`
}

// GraphNode is a step or a topic.
type GraphNode struct {
	ID       string       `json:"id"`
	Label    string       `json:"label"`
	Internal bool         `json:"internal,omitempty"` // of a topic: a repartition topic
	Stream   string       `json:"stream,omitempty"`   // of a step: the stream or table that it belongs to, e.g. "stream lines"
	Stores   []GraphStore `json:"stores,omitempty"`   // of a step: those that it keeps
}

// GraphStore is a store of a step.
type GraphStore struct {
	Name      string `json:"name"`
	Changelog string `json:"changelog"` // topic
}

// GraphEdge is an arrow between two nodes.
type GraphEdge struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Graph draws the topology.
func (t *Topology) Graph() Graph {
	topics := &topicIDs{ids: make(map[string]string)}
	internal := make(map[string]bool)
	g := Graph{Subtopologies: []GraphPart{}, Topics: []GraphNode{}, Edges: []GraphEdge{}}
	for _, s := range t.Subtopologies {
		part := GraphPart{ID: s.ID, Stateful: s.Stateful, Steps: []GraphNode{}}
		d := s.drawing(topics.id)
		for _, b := range d.boxes {
			node := GraphNode{ID: b.id, Label: b.label, Stream: b.stream}
			for _, store := range b.stores {
				node.Stores = append(node.Stores, GraphStore{Name: store.Name, Changelog: store.Changelog})
			}
			part.Steps = append(part.Steps, node)
		}
		for _, e := range d.edges {
			g.Edges = append(g.Edges, GraphEdge{From: e.from, To: e.to})
		}
		for _, sink := range s.Sinks {
			internal[sink.Topic] = internal[sink.Topic] || sink.Internal
		}
		g.Subtopologies = append(g.Subtopologies, part)
	}
	for _, name := range topics.order {
		g.Topics = append(g.Topics, GraphNode{ID: topics.ids[name], Label: name, Internal: internal[name]})
	}
	return g
}
