"""Files of features and pixels: what a caller orders, and the writers."""
