"""One file for each anomaly: what it condemns, and the words for it.

What is wrong with a single pair of told and held is a `condition` on its columns, with `evidence`:
verdict.py asks all of them in one pass. What shows only in many rows at once is a function from
DataFrames to findings.
"""
