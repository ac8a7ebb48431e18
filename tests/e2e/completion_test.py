"""srv completion: what real shells make of its scripts, and the manual page."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from srv_process import BIN, PATIENCE, ROOT, run_to_end

MANUAL = os.path.join(ROOT, "docs", "man", "srv.1")


def script(shell):
    status, text = run_to_end("completion", shell)
    assert status == 0, text
    return text


def without_defaults(text):
    """The manual without its version, which the build knows."""
    return re.sub(r'^\.TH .*$', ".TH", text, flags=re.MULTILINE)


class Bash(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temp = tempfile.TemporaryDirectory()
        cls.path = os.path.join(cls.temp.name, "srv.bash")
        with open(cls.path, "w", encoding="utf-8") as file:
            file.write(script("bash"))
        os.makedirs(os.path.join(cls.temp.name, "shop", "spec"))

    @classmethod
    def tearDownClass(cls):
        cls.temp.cleanup()

    def complete(self, *words):
        """What bash offers for the last of WORDS."""
        program = """source "$1"; shift
COMP_WORDS=(srv "$@"); COMP_CWORD=$#
_srv
printf '%s\\n' "${COMPREPLY[@]}"
"""
        done = subprocess.run(["bash", "--norc", "-ic", program, "bash", self.path, *words], cwd=self.temp.name, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.split()

    def test_commands_and_folders_are_offered_first(self):
        offered = self.complete("")
        for word in ("run", "test", "new", "check", "routes", "repl", "bench", "completion", "shop"):
            self.assertIn(word, offered)
        self.assertEqual(self.complete("che"), ["check"])
        self.assertEqual(self.complete("sho"), ["shop"])

    def test_options_are_the_commands_own(self):
        self.assertEqual(self.complete("check", "--j"), ["--json"])
        self.assertEqual(self.complete("bench", "--conn")[0], "--connections")
        self.assertIn("--body-limit", self.complete("run", "--bo"))
        self.assertIn("--body-limit", self.complete("shop", "--bo"))
        self.assertIn("--timeout", self.complete("test", "--"))
        self.assertEqual(self.complete("repl", "--body"), [])

    def test_elsewhere_bash_offers_files(self):
        self.assertEqual(self.complete("check", "sho"), [])  # -o default does it
        with open(self.path, encoding="utf-8") as file:
            self.assertIn("complete -o bashdefault -o default -F _srv srv", file.read())

    def test_shells_are_offered_for_completion(self):
        self.assertEqual(self.complete("completion", ""), ["bash", "zsh", "fish", "man"])


class Others(unittest.TestCase):
    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh_takes_its_script(self):
        done = subprocess.run(["zsh", "-fn"], input=script("zsh"), text=True, capture_output=True, timeout=PATIENCE)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish_offers_commands_and_options(self):
        program = script("fish") + '\ncomplete -C "srv che"\ncomplete -C "srv check --j"\n'
        done = subprocess.run(["fish", "--no-config"], input=program, text=True, capture_output=True, timeout=PATIENCE)
        self.assertEqual(done.stderr, "")
        self.assertRegex(done.stdout, r"(?m)^check\b")
        self.assertRegex(done.stdout, r"(?m)^--json\b")

    def test_each_command_has_help_with_its_options(self):
        _, text = run_to_end("--help")
        commands = re.findall(r"^  srv ([a-z]+)\b", text, re.MULTILINE)
        self.assertGreater(len(commands), 8)
        for command in commands:
            status, page = run_to_end(command, "--help")
            self.assertEqual((command, status), (command, 0), page)
            self.assertIn("srv " + command if command != "run" else "srv run", page)

    def test_another_shell_is_a_wrong_line(self):
        status, text = run_to_end("completion", "tcsh")
        self.assertEqual(status, 2)
        self.assertIn("bash, zsh, fish or man", text)
        self.assertEqual(run_to_end("completion")[0], 2)


class Manual(unittest.TestCase):
    def test_the_page_in_the_repository_is_what_help_says(self):
        with open(MANUAL, encoding="utf-8") as file:
            kept = file.read()
        self.assertEqual(without_defaults(kept), without_defaults(script("man")),
                         "write it anew: srv completion man > docs/man/srv.1")

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_groff_renders_it_without_a_warning(self):
        done = subprocess.run(["groff", "-ww", "-man", "-Tutf8", "-P-c"], input=script("man"), text=True, capture_output=True,
                              timeout=PATIENCE)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for text in ("--connections", "EXIT STATUS", "srv repl", "config.lua"):
            self.assertIn(text, re.sub(".\b", "", done.stdout).replace("‐", "-"))

    @unittest.skipUnless(shutil.which("mandoc"), "mandoc is not installed")
    def test_mandoc_finds_no_fault_in_it(self):
        done = subprocess.run(["mandoc", "-Tlint", "-Wwarning"], input=script("man"), text=True, capture_output=True, timeout=PATIENCE)
        lines = [line for line in done.stdout.splitlines() if "missing date" not in line]
        self.assertEqual(lines, [])

    @unittest.skipUnless(shutil.which("man"), "man is not installed")
    def test_man_shows_it(self):
        with tempfile.NamedTemporaryFile("w", suffix=".1") as file:
            file.write(script("man"))
            file.flush()
            done = subprocess.run(["man", "--warnings", "-l", file.name], text=True, capture_output=True, timeout=PATIENCE,
                                  env={**os.environ, "MANPAGER": "cat", "MANWIDTH": "100", "LC_ALL": "C.UTF-8"})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("EXIT STATUS", done.stdout)


if __name__ == "__main__":
    unittest.main()
