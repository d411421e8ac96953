"""The real world: sockets, files, threads, signals, clocks and configuration files."""
