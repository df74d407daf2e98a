"""A small recorder that an agent runtime calls, so that its sessions can be read without a reader.

Belongs here: writing evalpipe JSONL (docs/evalpipe-jsonl.md) from inside a running agent. Does not
belong here: anything that reads. Only the standard library is imported, because this module runs in
other people's processes.

What an agent may rely on:

- Every record is one line, written by one call to the operating system as soon as it is known. A
  process that dies loses nothing that it recorded; the call that it died in stays, without a result.
- A full disk or a folder that goes away never breaks the agent: what could not be written is counted
  in ``Recorder.n_lost`` and told once as a warning. Wrong arguments do raise, at once.
- Threads may share a recorder; a forked child goes on in a file of its own.

::

    recorder = Recorder("agent-logs", agent="helper", agent_release="2.1")
    with recorder.session(user_id="u1", model="m-a") as session:
        session.user("List the files.")
        with session.tool("Bash", {"command": "ls"}) as call:
            call.finish("a.py", exit_code=0)
        session.agent("There is one: a.py.", tokens={"input": 900, "output": 12})
"""

from evalpipe.collect.recorder import Recorder
from evalpipe.collect.session import RecordedCall, RecordedSession

__all__ = ["RecordedCall", "RecordedSession", "Recorder"]
