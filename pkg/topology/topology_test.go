package topology

const wordCount = `
streams:
  - name: lines
    from: {topic: lines, value: string}
    steps:
      - flat_map: split(lower(value), " ")
      - filter: value != ""
      - rekey: value
      - count: {store: counts}
      - to: {topic: counts, value: int}
`
