"""Groups: classic groups and their records."""
