"""One partition's log over a Disk port, in Kafka's on-disk format."""
