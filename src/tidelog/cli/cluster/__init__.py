"""`tidelog up`, `status`, `down` and `fault`: local clusters of broker processes."""
