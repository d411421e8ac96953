"""One partition on one broker: its log, its fences and who waits for them."""
