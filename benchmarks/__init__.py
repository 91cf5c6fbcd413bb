"""Speed and memory, measured. `script/bench` runs all of it, `script/bench evaluator` one of them."""
