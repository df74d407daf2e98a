"""Looking every night without paying for it: sequences of intervals, and alarms."""
