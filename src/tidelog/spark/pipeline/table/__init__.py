"""A directory of Parquet files in which every batch appears once and whole, or not at all."""
