"""Reference results that lie beside the repository, answered with the product's own functions.

``case`` reads a folder and compares; ``parameters`` says where every constant comes from; the other
modules answer checks, one a family of cases. A check that no module answers fails the test.
"""
