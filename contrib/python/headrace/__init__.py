"""Run prompts against rate-limited model APIs, each exactly once.

    import headrace

    for result in headrace.run(["Name a river.", "Name a lake."], model="gpt-4o-mini", output="results.jsonl"):
        print(result["custom_id"], result["error"] or result["response"]["body"])

    with headrace.serve(rpm=500) as server:  # other programs' calls wait in one line
        subprocess.run(["node", "app.js"], env={**os.environ, **server.env})

The command that this package carries does the work: ``python -m headrace --help`` explains it.
"""

from __future__ import annotations

import collections
import contextlib
import http.client
import json
import logging
import os
import re
import shlex
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from types import TracebackType
from typing import IO, Any, Callable, Deque, Dict, Iterable, Iterator, List, Mapping, Optional, Type, Union

__all__ = ["Result", "Server", "Stopped", "run", "serve"]

Result = Dict[str, Any]
"""One line of the output or of the errors file; ``error`` is None unless the prompt failed for good."""

Prompts = Union[str, "os.PathLike[str]", Iterable[Union[str, Mapping[str, Any]]]]

_HERE = os.path.dirname(os.path.abspath(__file__))
_BINARY = os.path.join(_HERE, "headrace.exe" if os.name == "nt" else "headrace")
_LEASH = os.path.join(_HERE, "_leash.py")
_POLL = 0.05  # seconds between two looks for new results
_PATIENCE = 60.0  # seconds that run waits for an earlier process to release the output, and serve for its first answer

_log = logging.getLogger("headrace")


class Stopped(Exception):
    """The run ended before its prompts did: a call with the same output continues it. Or a server did not
    start, or ended by itself.

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
        args = ["run", source, "--output=" + target, *_flags({**flags, "model": model, "progress": "json"})]
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


class Server:
    """A headrace serve of this process.

    ``url`` is where it is: ``http://127.0.0.1:PORT``, or ``unix:PATH``. ``env`` has the variables that the
    official clients read, for a program that is started. ``base_url`` and ``api_key`` are those of the first
    dialect, for a client in this process. They are None where there is none: on a socket, and where the
    file of ``clients`` has the tokens.
    """

    def __init__(self, url: str, env: Dict[str, str]) -> None:
        self.url = url
        self.env = env
        self.base_url = next((v for v in env.values() if "://" in v), None)
        self.api_key = next((v for v in env.values() if "://" not in v), None)

    def __repr__(self) -> str:
        return f"Server({self.url!r})"  # no token


@contextlib.contextmanager
def serve(**flags: Any) -> Iterator[Server]:
    """Serve the provider's own paths while the block runs: calls wait in one line instead of being refused.

        with headrace.serve(rpm=500) as server:
            client = OpenAI(base_url=server.base_url, api_key=server.api_key, max_retries=0, timeout=600)

    The server listens at a free port of loopback, unless ``addr`` or ``socket`` says otherwise, and is ready when
    the block begins. Keywords are flags of ``headrace serve``, as they are for ``run``. Notices go to the logger
    ``headrace``.

    Leaving the block refuses the requests that wait, and finishes the calls in flight within ``drain``. Ctrl-C
    meanwhile abandons them. So does the end of this process, however it comes. A server that does not
    start, or that ended before the block, raises ``Stopped``.
    """
    if "socket" not in flags:
        flags.setdefault("addr", "127.0.0.1:0")
    flags.setdefault("progress", "none")
    with tempfile.TemporaryDirectory(prefix="headrace-") as folder:
        name = os.path.join(folder, "introduction")
        with open(name, "wb") as out:
            child = _Child(["serve", *_flags(flags)], stdout=out, told=_log.info)
        with child:
            url = _await_answer(child, name, flags.get("socket"))
            yield Server(url, _exports(name))
            ended = child.has_ended()
            child.stop()
            # The end that Windows knows has a code of its own.
            if child.wait() != 0 and (ended or os.name != "nt"):
                raise Stopped(child.wait(), _without(folder, child.words))


def _await_answer(child: "_Child", introduction: str, path: Any) -> str:
    """Return the server's address once it answers: its introduction is whole then."""
    until = time.monotonic() + _PATIENCE
    while not child.has_ended() and time.monotonic() < until:
        url = "" if path is None else "unix:" + os.path.abspath(os.fspath(path))
        for value in _exports(introduction).values() if not url else ():
            if "://" in value:
                url = "{0.scheme}://{0.netloc}".format(urllib.parse.urlsplit(value))
                break
        if url and _answers(url):
            return url
        time.sleep(_POLL)
    child.stop()
    raise Stopped(child.wait(), "\n".join(child.words) or "it does not answer")


def _answers(url: str) -> bool:
    """Report whether the server at an address is ready."""
    kind, _, place = url.partition(":")
    connection = http.client.HTTPConnection("localhost")
    if kind == "https":
        # The certificate may be for another name, and nothing secret is sent.
        connection = http.client.HTTPSConnection(place[2:], timeout=_PATIENCE, context=ssl._create_unverified_context())
    elif kind == "http":
        connection = http.client.HTTPConnection(place[2:], timeout=_PATIENCE)
    try:
        if kind == "unix":
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.settimeout(_PATIENCE)
            connection.sock.connect(place)
        connection.request("GET", "/readyz")
        with connection.getresponse() as answer:
            return answer.status == http.client.OK
    except OSError:
        return False  # not yet
    finally:
        connection.close()


def _exports(introduction: str) -> Dict[str, str]:
    """Return the variables in the whole lines that the server prints for a shell."""
    with open(introduction, encoding="utf-8") as f:
        lines = re.findall(r"^export (\w+)=(.*)\n", f.read(), re.MULTILINE)
    env = {}
    for name, value in lines:
        kept = re.match(r"\$\(cat (.*)\)$", value)
        if kept:  # a token of an earlier server at this address
            with open(shlex.split(kept[1])[0], encoding="utf-8") as f:
                value = f.read().strip()
        if not value.startswith("hr-…"):  # the file of --clients has the tokens
            env[name] = value
    return env


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


def _flags(flags: Mapping[str, Any]) -> List[str]:
    """Return the keywords as flags of the command."""
    args = []
    for name, value in flags.items():
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

    def __init__(
        self,
        args: List[str],
        stdout: Union[int, IO[bytes]] = subprocess.DEVNULL,
        told: Callable[[str, str], None] = lambda *_: None,
    ) -> None:
        self._told = told  # hears the words, as a method of a logger does
        self.files: Dict[str, str] = {}  # of the start event: output, errors, …
        self.words: Deque[str] = collections.deque(maxlen=20)
        self.ready = threading.Event()  # the run has begun, or was refused
        # A session of its own: Ctrl-C comes to this process alone, which then decides.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", _LEASH, _BINARY, *args],
            stdin=subprocess.PIPE,
            stdout=stdout,
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
                    self._told("%s", text)
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
