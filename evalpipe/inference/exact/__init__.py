"""Exact and stratified tests: enumeration, convolution, two-by-two tables, permutation maxima."""
