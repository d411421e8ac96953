"""The deterministic wing: no clock, chance, socket, thread, async, os or logging below here."""
