"""The cluster's facts: record types, and the image that they build."""
