"""A broker as a member of the cluster: registration, heartbeats, start and clean stop."""
