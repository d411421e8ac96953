"""Tests of the house itself: doors, purity, sizes, names. Each also condemns a planted offence."""
