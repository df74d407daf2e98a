"""Assets, one module a part of the graph. Each is a thin call into ``evalpipe.steps``."""
