"""One module a format. Each declares a ``READER``; ``registry.py`` lists them."""
