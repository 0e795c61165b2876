"""What headrace.serve promises, against the simulated provider. The package must be installed: .ci/release does that."""

import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

import headrace

SIM = {"provider": "sim"}


def ask(base, key, headers=()):
    """Return the answer to one question, and its head."""
    body = json.dumps({"model": "sim-1", "messages": [{"role": "user", "content": "Name a river."}]}).encode()
    headers = {"Content-Type": "application/json", "Authorization": "Bearer {}".format(key), **dict(headers)}
    with urllib.request.urlopen(urllib.request.Request(base + "/chat/completions", body, headers), timeout=60) as answer:
        return json.load(answer)["choices"][0]["message"]["content"], answer.headers


def in_flight(server):
    """Return the number of calls in flight."""
    request = urllib.request.Request(server.url + "/headrace/status", headers={"Authorization": "Bearer " + server.api_key})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["in_flight"]


def wait_for(condition):
    until = time.monotonic() + 60
    while not condition():
        if time.monotonic() > until:
            raise AssertionError("it did not come")
        time.sleep(0.02)


class ServeTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def assertGone(self, url):
        connection = http.client.HTTPConnection(url.split("//")[1], timeout=60)
        with self.assertRaises(OSError):
            connection.request("GET", "/readyz")
        connection.close()

    def test_a_call_passes_and_the_server_ends_with_the_block(self):
        with headrace.serve(sim_profile="fast", **SIM) as server:
            text, head = ask(server.base_url, server.api_key)
            self.assertTrue(text)
            self.assertEqual("1", head["X-Headrace-Attempts"])
            self.assertEqual({"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": server.api_key}, server.env)
            self.assertNotIn(server.api_key, repr(server))
        self.assertGone(server.url)

    def test_two_servers_have_a_port_each(self):
        with headrace.serve(**SIM) as one, headrace.serve(**SIM) as other:
            self.assertNotEqual(one.url, other.url)

    def test_a_token_of_an_earlier_server_at_the_address_is_found(self):
        with headrace.serve(sim_profile="fast", token_file=os.path.join(self.folder, "a 'token'"), **SIM) as server:
            first = server.api_key
        with headrace.serve(sim_profile="fast", token_file=os.path.join(self.folder, "a 'token'"), **SIM) as server:
            self.assertEqual(first, server.api_key)
            ask(server.base_url, server.api_key)

    def test_a_program_finds_the_server_by_its_environment(self):
        code = "import os, test_serve; print(test_serve.ask(os.environ['OPENAI_BASE_URL'], os.environ['OPENAI_API_KEY'])[0])"
        with headrace.serve(sim_profile="fast", **SIM) as server:
            env = {**os.environ, **server.env, "PYTHONPATH": os.pathsep.join(sys.path)}
            printed = subprocess.run([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, check=True).stdout
        self.assertTrue(printed.strip())

    def test_a_run_goes_through_it(self):
        with headrace.serve(sim_profile="fast", **SIM) as server:
            results = list(headrace.run(["a", "b"], model="sim-1", through=server.url))
        self.assertEqual([None, None], [r["error"] for r in results])

    def test_calls_in_flight_finish_at_the_end(self):
        got = []
        with headrace.serve(**SIM) as server:
            call = threading.Thread(target=lambda: got.append(ask(server.base_url, server.api_key)[0]))
            call.start()
            wait_for(lambda: in_flight(server) == 1)
        call.join()
        self.assertEqual(1, len(got))

    def test_drain_bounds_the_end(self):
        got = []

        def call():
            try:
                got.append(ask(server.base_url, server.api_key)[0])
            except (OSError, http.client.HTTPException):
                got.append("cut")

        with headrace.serve(drain="0s", **SIM) as server:
            caller = threading.Thread(target=call)
            caller.start()
            wait_for(lambda: in_flight(server) == 1)
        caller.join()
        self.assertEqual(["cut"], got)

    def test_a_socket_serves_as_well(self):
        path = os.path.join(self.folder, "s")
        with headrace.serve(socket=path, sim_profile="fast", **SIM) as server:
            self.assertEqual("unix:" + path, server.url)
            self.assertIsNone(server.base_url)
            self.assertEqual([None], [r["error"] for r in headrace.run(["a"], model="sim-1", through=server.url)])
        self.assertFalse(os.path.exists(path))

    def test_clients_have_their_own_tokens(self):
        path = os.path.join(self.folder, "clients.yaml")
        token = subprocess.run([sys.executable, "-m", "headrace", "serve", "token"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
        with open(path, "wb") as f:
            f.write(b"clients:\n" + token.stdout)
        with headrace.serve(clients=path, sim_profile="fast", **SIM) as server:
            self.assertIsNone(server.api_key)
            ask(server.base_url, token.stderr.split()[-1].decode())
            with self.assertRaises(urllib.error.HTTPError) as caught:
                ask(server.base_url, "hr-other")
            caught.exception.close()
        self.assertEqual(401, caught.exception.code)

    def test_a_server_that_cannot_start_raises_stopped(self):
        with self.assertRaises(headrace.Stopped) as caught:
            with headrace.serve(max_waiting=0, **SIM):
                self.fail("the block began")
        self.assertEqual(2, caught.exception.code)
        self.assertIn("--max-waiting", caught.exception.words)

    def test_a_server_that_ended_by_itself_raises_stopped_after_the_block(self):
        began = []

        class Child(headrace._Child):
            def __init__(self, *args, **named):
                super().__init__(*args, **named)
                began.append(self._process.pid)

        usual, headrace._Child = headrace._Child, Child
        try:
            with self.assertRaises(headrace.Stopped):
                with headrace.serve(**SIM) as server:
                    os.killpg(began[0], signal.SIGKILL)
                    wait_for(lambda: not headrace._answers(server.url))
        finally:
            headrace._Child = usual

    def test_an_error_in_the_block_is_the_users(self):
        with self.assertRaises(ZeroDivisionError):
            with headrace.serve(**SIM) as server:
                raise ZeroDivisionError
        self.assertGone(server.url)

    def test_the_death_of_python_ends_the_server(self):
        code = "import headrace, time\nwith headrace.serve(provider='sim') as s: print(s.url, flush=True); time.sleep(600)"
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        url = process.stdout.readline().decode().strip()
        process.kill()
        process.wait()
        process.stdout.close()
        wait_for(lambda: not headrace._answers(url))


if __name__ == "__main__":
    unittest.main()
