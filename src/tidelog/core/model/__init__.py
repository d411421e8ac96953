"""The words everyone uses: ids, errors, limits, settings, the trace port."""
