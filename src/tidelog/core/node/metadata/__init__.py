"""The metadata log of a node: its quorum, its snapshots, and the image that follows from it."""
