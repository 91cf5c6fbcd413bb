"""Pages for people: what there is, and a map of each."""
