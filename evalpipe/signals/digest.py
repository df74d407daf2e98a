"""What extraction is made of, as one digest: rule files, the classifier, versions of the code that runs them.

Belongs here: the digest. A changed pattern or a raised version is a new measurement.
"""

from __future__ import annotations

import hashlib

from evalpipe.signals import episodes, features, hard, process, rulefiles, semantic, tasks
from evalpipe.signals.borderline import model


def extraction_digest() -> str:
    """Twelve hexadecimal digits over every rule file, by relative path, the classifier and all versions.

    What the classifier finds counts nowhere, but its rows are part of a slice, which is known by its digest.
    """
    state = hashlib.blake2b(digest_size=6)
    root = rulefiles.patterns_dir()
    for path in sorted(root.rglob("*.toml"), key=lambda p: p.relative_to(root).as_posix()):
        state.update(path.relative_to(root).as_posix().encode() + b"\0")
        # Line ends depend on the checkout, not on the rules.
        state.update(path.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    versions = (semantic.VERSION, hard.VERSION, tasks.VERSION, episodes.VERSION, features.VERSION, process.VERSION)
    state.update("\0".join((*versions, model.shipped().digest)).encode())
    return state.hexdigest()
