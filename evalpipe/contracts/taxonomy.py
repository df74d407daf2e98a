"""What a call can fail of: categories, the layer that each points to, and the names of other taxonomies.

Belongs here: one versioned list. Does not belong here: how a category is told (``signals``). A layer is
the category's usual one, a prior and no verdict: a missing path may be the agent's slip or the world's.
A category keeps its meaning; a new or moved one raises :data:`TAXONOMY_VERSION`.
"""

from __future__ import annotations

from dataclasses import dataclass

TAXONOMY_VERSION = "2"

#: Layers that a failure is attributed to.
LAYERS: dict[str, str] = {
    "planning": "The wrong call was made.",
    "execution": "The right call was made with wrong content.",
    "environment": "The world outside the agent failed it.",
    "interaction": "A person or a policy stopped it.",
}


@dataclass(frozen=True, slots=True)
class Category:
    """One kind of failure: its name, its layer, and what it is."""

    name: str
    layer: str
    meaning: str


CATEGORIES: tuple[Category, ...] = (
    Category(
        "nonexistent_tool", "planning", "A tool, a parameter or a helper function that does not exist was called."
    ),
    Category("tool_guard", "planning", "The harness does not allow this call now: file not read yet, folder outside."),
    Category("parameter_validation", "execution", "Arguments are missing or of another type."),
    Category(
        "edit_target_mismatch", "execution", "The text to replace, or a patch's context, is not there or not unique."
    ),
    Category("edit_syntax_error", "execution", "The patch is malformed, or the edit would break the file's syntax."),
    Category("size_limit", "execution", "More was asked for than a tool gives at once."),
    Category("path_not_found", "execution", "A file or folder does not exist, or is of another kind."),
    Category("unknown_reference", "execution", "A table, branch, order, script or other named thing does not exist."),
    Category("usage_or_syntax", "execution", "Wrong options, arguments or syntax of a command, query or program."),
    Category("config", "execution", "A setting is missing or wrong."),
    Category("http_client_error", "execution", "A server refused the request as wrong (4xx, but for 401 and 403)."),
    Category(
        "runtime_exception", "execution", "A program that the agent ran raised, crashed by itself, or just failed."
    ),
    Category("command_not_found", "environment", "The program is not there."),
    Category("permission", "environment", "The system denied access."),
    Category("timeout", "environment", "It took longer than it was given."),
    Category("killed", "environment", "A signal ended it."),
    Category("missing_dependency", "environment", "A package, library or version is not there."),
    Category("auth", "environment", "Not logged in, or credentials were refused."),
    Category("network", "environment", "A host, name or service could not be reached, or failed itself."),
    Category("resource", "environment", "Memory, disk, port, lock or quota."),
    Category("test_failure", "execution", "A test failed (a check's finding, not an error)."),
    Category("lint_findings", "execution", "A linter, type checker or formatter has findings (likewise)."),
    Category("build_failure", "execution", "A compiler or build rejected the code (likewise)."),
    Category("refused", "interaction", "A person or a policy refused the call."),
    Category("interrupted", "interaction", "A person stopped the call."),
)

#: Categories of command errors and check failures, with the layer that each points to first.
CATEGORY_LAYERS: dict[str, str] = {category.name: category.layer for category in CATEGORIES}

#: Names that other taxonomies use, as categories of this one; null where no single call shows it.
OTHER_NAMES: dict[str, dict[str, tuple[str, ...] | None]] = {
    "four layers of a failure": {
        layer: tuple(c.name for c in CATEGORIES if c.layer == layer) for layer in LAYERS
    },
    "kinds of tool error": {
        "shell failure": ("command_not_found", "usage_or_syntax", "killed"),
        "non-zero exit": ("runtime_exception", "config", "http_client_error", "unknown_reference"),
        "permission": ("permission", "auth"),
        "missing path": ("path_not_found",),
        "missing dependency": ("missing_dependency",),
    },
    "error categories of a trajectory": {
        "tool": tuple(
            c.name for c in CATEGORIES
            if c.layer in ("execution", "environment") and c.name not in ("parameter_validation", "edit_syntax_error")
        ),
        "planning": ("nonexistent_tool", "tool_guard"),
        "format": ("parameter_validation", "edit_syntax_error"),
        "reasoning": None,
        "missing step": None,
    },
}  # fmt: skip
