"""The simulated world: virtual time, a lossy network, a crashing disk, seeded schedules."""
