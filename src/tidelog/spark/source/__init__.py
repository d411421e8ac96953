"""`spark.read` and `spark.readStream` of topics, with the options of Spark's Kafka source."""
