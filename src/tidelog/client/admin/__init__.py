"""Questions to a cluster: one small function each, and the machine that asks them."""
