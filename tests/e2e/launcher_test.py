"""The script ./srv, in a checkout of stubs: what it does when LuaJIT cannot be built, and when a build was interrupted."""
import os
import shutil
import subprocess
import tempfile
import unittest

from srv_process import PATIENCE, ROOT, write_app

# Programs that the script calls, as they are where all is installed.
STUBS = {
    "dpkg-query": "printf installed",
    "cmake": "mkdir -p build/release && touch build/release/build.ninja",
    "ninja": "true",
}
BUILDS = 'mkdir -p "$1/lib" && touch "$1/lib/libluajit.a"'
FAILS = 'mkdir -p "$1.part" && touch "$1.part/apt.log" && exit 1'
IS_KILLED = 'mkdir -p "$1.part" && touch "$1.part/apt.log" && kill -TERM $$'
FALLBACK = "taking Debian's LuaJIT instead"


class Launcher(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        shutil.copy(os.path.join(ROOT, "srv"), self.root)
        files = {"bin/" + name: "#!/bin/sh\n%s\n" % code for name, code in STUBS.items()}
        files["build/release/srv"] = "#!/bin/sh\necho served\n"
        write_app(self.root, files)
        for name in files:
            os.chmod(os.path.join(self.root, name), 0o755)

    def start(self, luajit, command="./srv"):
        """Runs COMMAND with a cmake/luajit.sh of this code; gives its exit status and all it said."""
        write_app(self.root, {"cmake/luajit.sh": luajit + "\n"})
        environment = dict(os.environ, PATH=os.path.join(self.root, "bin") + ":" + os.environ["PATH"])
        ended = subprocess.run([command, "app"], cwd=self.root, env=environment, text=True, timeout=PATIENCE,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return ended.returncode, ended.stdout

    def test_a_link_to_it_is_as_good(self):
        os.symlink(os.path.join(self.root, "srv"), os.path.join(self.root, "bin", "srv"))
        status, text = self.start(BUILDS, os.path.join(self.root, "bin", "srv"))
        self.assertEqual(status, 0, text)
        self.assertIn("served", text)

    def test_a_build_that_failed_is_not_tried_again_and_the_way_to_try_is_told(self):
        for luajit in (FAILS, BUILDS):
            status, text = self.start(luajit)
            self.assertEqual(status, 0, text)
            self.assertIn(FALLBACK, text)
            self.assertIn("rm -r build/luajit.part", text)
            self.assertIn("served", text)
        shutil.rmtree(os.path.join(self.root, "build", "luajit.part"))
        self.assertNotIn(FALLBACK, self.start(BUILDS)[1])

    def test_a_build_that_was_interrupted_is_tried_again(self):
        status, text = self.start(IS_KILLED)
        self.assertEqual(status, 128 + 15, text)
        self.assertNotIn(FALLBACK, text)
        status, text = self.start(BUILDS)
        self.assertEqual(status, 0, text)
        self.assertIn("building LuaJIT", text)
        self.assertNotIn(FALLBACK, text)


if __name__ == "__main__":
    unittest.main()
