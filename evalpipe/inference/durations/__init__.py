"""Times to an event, some of them not over when they were last seen."""
