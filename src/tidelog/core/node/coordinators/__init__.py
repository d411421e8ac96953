"""The coordinators of a node: which partition of an internal topic is served here, and how."""
