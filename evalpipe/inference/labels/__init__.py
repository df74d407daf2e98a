"""Human labels beside signals: weights of signals, and what their errors do to an estimate."""
