"""What the module promises, against the simulated provider. The package must be installed: .ci/release does that."""

import collections
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import headrace

PROMPTS = ["What is {} times two?".format(i) for i in range(60)]
SIM = {"model": "sim-1", "provider": "sim"}


class RunTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.output = os.path.join(folder.name, "results.jsonl")

    def saved(self):
        """The ids in the output, each of which must stand there once."""
        if not os.path.exists(self.output):
            return set()
        with open(self.output, encoding="utf-8") as f:
            ids = [json.loads(line)["custom_id"] for line in f]
        self.assertEqual([], [i for i, n in collections.Counter(ids).items() if n > 1])
        return set(ids)

    def start(self, *lines):
        """Start a Python that runs the prompts and prints their ids. A shell that starts the tests in the
        background has them ignore SIGINT."""
        ctrl_c = "signal.signal(signal.SIGINT, signal.default_int_handler)"
        code = "\n".join(["import headrace, signal, sys", ctrl_c, "prompts = {!r}".format(PROMPTS), *lines])
        process = subprocess.Popen([sys.executable, "-c", code, self.output], stdout=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        return process

    LOOP = "for r in headrace.run(prompts, model='sim-1', output=sys.argv[1], provider='sim'): print(r['custom_id'], flush=True)"

    def test_every_prompt_has_one_result(self):
        results = list(headrace.run(PROMPTS, sim_profile="fast", **SIM))
        self.assertEqual(60, len({r["custom_id"] for r in results}))
        self.assertTrue(all(r["error"] is None and r["response"]["status_code"] == 200 for r in results))

    def test_results_come_before_the_run_ends(self):
        began = time.monotonic()
        run = headrace.run(PROMPTS, output=self.output, **SIM)
        next(run)
        first = time.monotonic() - began
        self.assertEqual(59, len(list(run)))
        self.assertLess(first * 2, time.monotonic() - began)

    def test_a_run_left_in_the_middle_goes_on(self):
        run = headrace.run(PROMPTS, output=self.output, **SIM)
        early = [next(run)["custom_id"] for _ in range(5)]
        run.close()
        before = self.saved()
        self.assertLess(len(before), 60)
        self.assertLessEqual(set(early), before)
        again = [r["custom_id"] for r in headrace.run(PROMPTS, output=self.output, **SIM)]
        self.assertEqual(60, len(again))
        self.assertEqual(before, set(again[: len(before)]))
        self.assertEqual(set(again), self.saved())

    def test_a_run_that_is_killed_in_the_middle_goes_on(self):
        for name in ["SIGKILL", "SIGTERM"]:
            with self.subTest(name):
                process = self.start(self.LOOP)
                for _ in range(5):
                    process.stdout.readline()
                process.send_signal(getattr(signal, name))
                process.wait()
                again = {r["custom_id"] for r in headrace.run(PROMPTS, output=self.output, **SIM)}
                self.assertEqual(60, len(again))
                self.assertEqual(again, self.saved())
                os.remove(self.output)

    def test_the_death_of_python_ends_the_command(self):
        process = self.start(self.LOOP)
        for _ in range(5):
            process.stdout.readline()
        process.kill()
        process.wait()
        list(headrace.run(PROMPTS, output=self.output, limit=1, **SIM))  # waits for the lock
        self.assertLess(len(self.saved()), 60)

    def test_ctrl_c_stops_and_saves(self):
        process = self.start("try:", "    " + self.LOOP, "except KeyboardInterrupt: print('interrupted', flush=True)")
        printed = {process.stdout.readline().split()[0].decode() for _ in range(5)}
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read().split()
        self.assertEqual(0, process.wait())
        self.assertEqual(b"interrupted", rest[-1])
        self.assertLessEqual(printed, self.saved())
        self.assertLess(len(self.saved()), 60)

    def test_a_run_that_cannot_begin_raises_stopped(self):
        with self.assertRaises(headrace.Stopped) as caught:
            list(headrace.run([{"prompt": 1}], output=self.output, **SIM))
        self.assertEqual(2, caught.exception.code)
        self.assertIn("prompts.jsonl:1: prompt is a number", caught.exception.words)
        self.assertNotIn(tempfile.gettempdir(), caught.exception.words)

    def test_a_bound_raises_stopped_and_keeps_the_results(self):
        got = []
        with self.assertRaises(headrace.Stopped) as caught:
            for r in headrace.run(PROMPTS, output=self.output, deadline="1s", **SIM):
                got.append(r["custom_id"])
        self.assertEqual(4, caught.exception.code)
        self.assertEqual(self.saved(), set(got))

    def test_a_foreign_file_is_refused_and_yields_nothing(self):
        with open(self.output, "w") as f:
            f.write('{"custom_id": "a"}\n')
        with self.assertRaises(headrace.Stopped) as caught:
            next(headrace.run(PROMPTS, output=self.output, **SIM))
        self.assertEqual(2, caught.exception.code)

    def test_a_torn_last_line_is_not_yielded(self):
        list(headrace.run(PROMPTS[:3], output=self.output, sim_profile="fast", **SIM))
        with open(self.output, "rb+") as f:
            f.truncate(os.path.getsize(self.output) - 10)
        again = [r["custom_id"] for r in headrace.run(PROMPTS[:3], output=self.output, sim_profile="fast", **SIM)]
        self.assertEqual(3, len(again))
        self.assertEqual(self.saved(), set(again))

    def test_a_line_is_yielded_once_it_is_whole(self):
        output = self.output

        class Child:
            steps = iter([(b'{"n": 1}\n{"n"', False), (b": 2}", False), (b"\n", True)])

            def has_ended(self):
                piece, ended = next(self.steps)
                with open(output, "ab") as f:
                    f.write(piece)
                return ended

        with open(output, "wb"):
            pass
        self.assertEqual([{"n": 1}, {"n": 2}], list(headrace._follow(Child(), output)))

    def test_failed_prompts_come_last_and_do_not_raise(self):
        server = subprocess.Popen(
            [sys.executable, "-m", "headrace", "sim", "--addr=127.0.0.1:0", "--profile=fast", "--errors=500=0.5"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        lines = iter(server.stdout.readline, b"")
        url = next(w for line in lines for w in line.decode().split() if w.startswith("http://"))
        results = list(headrace.run(
            PROMPTS, model="sim-1", output=self.output, base_url=url, api_key_env="none",
            max_attempts=1, keep_going=True,
        ))
        kinds = [r["error"] is not None for r in results]
        self.assertEqual(60, len(results))
        self.assertIn(True, kinds)
        self.assertEqual(sorted(kinds), kinds)

    def test_order_input_yields_in_order_also_after_a_stop(self):
        run = headrace.run(PROMPTS[:30], output=self.output, deadline="1s", **SIM)
        self.assertRaises(headrace.Stopped, list, run)
        results = headrace.run(PROMPTS[:30], output=self.output, order="input", **SIM)
        self.assertEqual(list(range(1, 31)), [r["headrace"]["line"] for r in results])

    def test_an_output_to_standard_output_is_refused(self):
        self.assertRaises(ValueError, list, headrace.run(PROMPTS, output="-", **SIM))


if __name__ == "__main__":
    unittest.main()
