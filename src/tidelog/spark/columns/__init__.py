"""Record batches as Arrow columns and back, for many rows at once; knows nothing of Spark itself.

`decode.ColumnDecoder` reads fetch responses, `encode.encode` makes batches to be produced, and
`murmur2.partitions_of` says where keys go. Only numpy and pyarrow are needed.
"""
