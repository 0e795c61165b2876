"""Run prompts against rate-limited model APIs, each exactly once.

    import headrace

    for result in headrace.run(["Name a river.", "Name a lake."], model="gpt-4o-mini", output="results.jsonl"):
        print(result["custom_id"], result["error"] or result["response"]["body"])

The command that this package carries does the work: ``python -m headrace --help`` explains it.
"""

from __future__ import annotations

import collections
import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
import time
from types import TracebackType
from typing import IO, Any, Deque, Dict, Iterable, Iterator, List, Mapping, Optional, Type, Union

__all__ = ["Result", "Stopped", "run"]

Result = Dict[str, Any]
"""One line of the output or of the errors file; ``error`` is None unless the prompt failed for good."""

Prompts = Union[str, "os.PathLike[str]", Iterable[Union[str, Mapping[str, Any]]]]

_HERE = os.path.dirname(os.path.abspath(__file__))
_BINARY = os.path.join(_HERE, "headrace.exe" if os.name == "nt" else "headrace")
_LEASH = os.path.join(_HERE, "_leash.py")
_POLL = 0.05  # seconds between two looks for new results
_PATIENCE = 60.0  # seconds that run waits for an earlier process to release the output

_log = logging.getLogger("headrace")


class Stopped(Exception):
    """The run ended before its prompts did. A call with the same output continues it.

    ``code`` is the command's exit code, and ``words`` is what it said last.
    """

    def __init__(self, code: int, words: str) -> None:
        super().__init__(code, words)
        self.code = code
        self.words = words

    def __str__(self) -> str:
        return f"exit code {self.code}: {self.words}"


def run(
    prompts: Prompts,
    *,
    model: Optional[str] = None,
    output: Union[str, "os.PathLike[str]", None] = None,
    **flags: Any,
) -> Iterator[Result]:
    """Yield one dict for each result, as it comes; prompts that failed for good come last.

    ``prompts`` is the name of a prompt file, or an iterable of strings and of dicts such as
    ``{"prompt": "…", "id": "…"}``. An iterable is read to its end first: every prompt is checked
    before any call.

    With ``output``, results are kept in that file, and a later call with the same prompts and output
    continues: it yields the saved results, then those of the prompts that are left. Without it
    nothing is kept.

    Other keywords are flags of ``headrace run``: ``max_tokens=50`` is ``--max-tokens=50``, ``True`` is a flag
    without a value, and a list repeats the flag. Notices go to the logger ``headrace``.

    Leaving the loop, or Ctrl-C, finishes and saves the calls in flight. A second Ctrl-C abandons them. A
    run that cannot finish raises ``Stopped``.
    """
    with tempfile.TemporaryDirectory(prefix="headrace-") as folder:
        source = _source(prompts, folder)
        target = os.path.join(folder, "results.jsonl") if output is None else os.fspath(output)
        if target == "-":
            raise ValueError('output "-" is invalid: want the name of a file, or None')
        args = ["run", source, "--output=" + target, *_flags(flags, model)]
        with _start(args) as child:
            if flags.get("order") == "input":
                child.wait()  # a run that continues brings its output into order at its end
            yield from _follow(child, child.files.get("output"))
            code = child.wait()
            failed = 0
            if code in (0, 1):
                for result in _follow(child, child.files.get("errors")):
                    failed += 1
                    yield result
            if code != 0 and (code != 1 or failed == 0):
                raise Stopped(code, _without(folder, child.words))


def _source(prompts: Prompts, folder: str) -> str:
    """Return the name of a prompt file with the prompts."""
    if isinstance(prompts, (str, os.PathLike)):
        return os.fspath(prompts)
    name = os.path.join(folder, "prompts.jsonl")
    with open(name, "w", encoding="utf-8") as f:
        for prompt in prompts:
            line = {"prompt": prompt} if isinstance(prompt, str) else dict(prompt)
            f.write(json.dumps(line, ensure_ascii=False) + "\n")
    return name


def _flags(flags: Mapping[str, Any], model: Optional[str]) -> List[str]:
    """Return the keywords as flags of the command."""
    args = []
    for name, value in {**flags, "model": model, "progress": "json"}.items():
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is not None:
                text = str(one).lower() if isinstance(one, bool) else str(one)
                args.append("--{}={}".format(name.replace("_", "-"), text))
    return args


def _start(args: List[str]) -> "_Child":
    """Start the command. Wait for an earlier one that still finishes its calls for the same output."""
    until = time.monotonic() + _PATIENCE
    while True:
        child = _Child(args)
        try:
            child.ready.wait()
            if not child.is_locked_out() or time.monotonic() > until:
                return child
            child.stop()
            time.sleep(4 * _POLL)
        except BaseException:
            child.stop()
            raise


def _follow(child: "_Child", name: Optional[str]) -> Iterator[Result]:
    """Yield the lines of a file that the child may still write, until it has ended."""
    if name is None:
        return  # the child began no run
    while not os.path.exists(name):
        if child.has_ended():
            return
        time.sleep(_POLL)
    with open(name, "rb") as f:
        while True:
            ended = child.has_ended()  # before the read: what was written until then is read
            for line in iter(f.readline, b""):
                if not line.endswith(b"\n"):
                    f.seek(-len(line), os.SEEK_CUR)  # not whole yet
                    break
                yield json.loads(line)
            if ended:
                return
            time.sleep(_POLL)


def _without(folder: str, words: Iterable[str]) -> str:
    """Return the words without the temporary folder, and without a command that would read a file in it."""
    kept = [w for w in words if not (folder in w and " run " in w)]
    return "\n".join(kept).replace(folder + os.sep, "")


class _Child:
    """The command, as a process that ends when this one does."""

    def __init__(self, args: List[str]) -> None:
        self.files: Dict[str, str] = {}  # of the start event: output, errors, …
        self.words: Deque[str] = collections.deque(maxlen=20)
        self.ready = threading.Event()  # the run has begun, or was refused
        # A session of its own: Ctrl-C comes to this process alone, which then decides.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", _LEASH, _BINARY, *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._process.stdin is not None and self._process.stderr is not None
        self._life: IO[bytes] = self._process.stdin
        self._listener = threading.Thread(target=self._listen, args=(self._process.stderr,), daemon=True)
        self._listener.start()

    def _listen(self, stderr: IO[bytes]) -> None:
        with stderr:
            for line in stderr:
                text = line.decode("utf-8", "replace").rstrip()
                if not text.startswith('{"event":'):
                    self.words.append(text)
                    continue
                event = json.loads(text)
                if event["event"] == "start":
                    self.files = event
                    self.ready.set()
                elif event["event"] == "notice":
                    _log.info("%s", event["message"])
        self.ready.set()

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def is_locked_out(self) -> bool:
        return not self.files and self.wait() == 2 and any("it is in use by process" in w for w in self.words)

    def wait(self) -> int:
        code = self._process.wait()
        self._listener.join()
        return code

    def stop(self) -> None:
        """Have the calls in flight finished and saved. An interrupt meanwhile abandons them."""
        try:
            self._life.close()
            self.wait()
        except BaseException:
            self._process.terminate()
            self.wait()
            raise

    def __enter__(self) -> "_Child":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        value: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.stop()
