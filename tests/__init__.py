"""Every kind of test has its own room; `tests` is a package so that rooms can share harnesses."""
