"""Side-by-side benchmarks: the same load on Tidelog and, where it can be had, on Apache Kafka."""
