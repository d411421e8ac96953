"""`tidelog audit`: its options and its report."""
