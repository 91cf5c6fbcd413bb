"""What geomill knows, without any input or output: models, state machines, graphs and the evaluator."""
