// Package draw draws topologies: as text for Graphviz and Mermaid, and as SVG that needs neither a program nor a font from elsewhere.
//
// SVG is laid out in layers (layered.go), twice: the steps of each subtopology from top to bottom, then topics and
// subtopologies from left to right. The same topology gives the same bytes.
package draw
