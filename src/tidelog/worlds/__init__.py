"""Two worlds for one Node: the real one and the simulated one."""
