"""Tests of the transaction coordinator, room by room as the package."""
