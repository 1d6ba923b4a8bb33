#!/usr/bin/env python3
"""Follows a page of the manual, block by block, in a folder of its own.

    ```tw FILE          the block is written to FILE
    ```diff FILE        the block is applied to FILE
    ```sh               each line after "$ " is run (a trailing \\ continues it); lines below it must
                        occur in what it prints, in order; "..." in a line stands for anything
    ```sh CODE          the same for a command that ends with this exit code
    ```c FILE           a whole program: built against the library, and run
    ```c                statements or, when it begins with "static", a function: compiled

Runs of blanks count as one. Usage: run_page.py PAGE --tilewright COMMAND [--include DIR --library DIR]
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

HEAD = """#include "tilewright.h"
#include <stdio.h>
#include <string.h>
#include <pthread.h>
#define TRY(e) do { tw_status st_ = (e); if (st_) return st_; } while (0)
"""
OPEN = """tw_status block(tw_context *cx, tw_device *device, tw_kernel *kernel, tw_stream *stream,
                const tw_arg *args, size_t count);
tw_status block(tw_context *cx, tw_device *device, tw_kernel *kernel, tw_stream *stream,
                const tw_arg *args, size_t count)
{
(void)cx, (void)device, (void)kernel, (void)stream, (void)args, (void)count;
"""


def blocks(page):
    lines = open(page, encoding="utf-8").read().split("\n")
    i = 0
    while i < len(lines):
        if lines[i].startswith("```") and len(lines[i]) > 3:
            words, first = lines[i][3:].split(), i + 1
            while lines[i + 1] != "```":
                i += 1
            yield first + 1, words, lines[first:i + 1]
            i += 1
        i += 1


class Page:
    def __init__(self, options):
        self.o = options
        self.count = self.failures = 0
        self.folder = tempfile.mkdtemp()
        path = os.path.dirname(os.path.abspath(options.tilewright))
        self.env = dict(os.environ, PATH=path + ":" + os.environ["PATH"], LC_ALL="C.UTF-8",
                        TILEWRIGHT_STORE=self.folder + "/store.db",
                        LD_LIBRARY_PATH=os.path.abspath(options.library or "."))
        shutil.copytree("kernels", self.folder + "/kernels")

    def fail(self, line, why, text=""):
        self.failures += 1
        print(f"{self.o.page}:{line}: {why}")
        for row in text.splitlines()[:40]:
            print("    | " + row)

    def run(self, line, command, code=0):
        r = subprocess.run(command, shell=isinstance(command, str), cwd=self.folder, env=self.env,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           stdin=subprocess.DEVNULL, timeout=300)
        if r.returncode != code:
            self.fail(line, f"exit code {r.returncode} instead of {code}: {command}", r.stdout)
        return r.stdout

    def expect(self, line, rows, output):
        have = [" ".join(row.split()) for row in output.splitlines()]
        for row in rows:
            parts = [re.escape(p) for p in " ".join(row.split()).split("...")]
            at = next((i for i, h in enumerate(have) if re.fullmatch(".*".join(parts), h)), None)
            if at is None:
                self.fail(line, f"'{row.strip()}' is not printed", output)
                return
            have = have[at + 1:]

    def shell(self, line, rows, code):
        while rows:
            command, expected = rows.pop(0), []
            if not command.startswith("$ "):
                self.fail(line, "an sh block begins with a command: '$ ...'")
                return
            while command.endswith("\\"):
                command = command[:-1] + rows.pop(0).lstrip("> ")
            while rows and not rows[0].startswith("$ "):
                expected.append(rows.pop(0))
            output = self.run(line, command[2:], code)
            self.expect(line, [e for e in expected if e.strip()], output)

    def apply(self, line, name, rows):
        path = f"{self.folder}/{name}"
        text = open(path, encoding="utf-8").read()
        hunk = []
        for row in rows + ["@@"]:
            if not row.startswith("@@"):
                hunk.append(row or " ")
            elif hunk:
                old = "".join(r[1:] + "\n" for r in hunk if r[0] in " -")
                new = "".join(r[1:] + "\n" for r in hunk if r[0] in " +")
                if text.count(old) != 1:
                    self.fail(line, f"a hunk fits {text.count(old)} places of {name}", old)
                text, hunk = text.replace(old, new), []
        open(path, "w", encoding="utf-8").write(text)

    def compile(self, line, rows, name):
        text = "\n".join(rows) + "\n"
        if not name and text.startswith("static"):
            text = HEAD + text
        elif not name:
            text = HEAD + OPEN + text + "return TW_OK;\n}\n"
        source = self.folder + "/" + (name or "block.c")
        open(source, "w", encoding="utf-8").write(text)
        command = [self.o.cc, "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror",
                   "-Wno-unused-function", "-I" + os.path.abspath(self.o.include), source]
        if name:
            command += ["-o", self.folder + "/program", "-L" + os.path.abspath(self.o.library),
                        "-ltilewright", "-lm", "-pthread"]
        else:
            command += ["-c", "-o", "/dev/null"]
        self.run(line, command)
        if name and not self.failures:
            self.run(line, ["./program"])

    def follow(self):
        for line, words, rows in blocks(self.o.page):
            kind, argument = words[0], words[1] if len(words) > 1 else None
            self.count += 1
            if kind == "sh":
                self.shell(line, rows, int(argument or 0))
            elif kind == "c":
                self.compile(line, rows, argument)
            elif kind == "tw" and argument:
                open(f"{self.folder}/{argument}", "w", encoding="utf-8").write("\n".join(rows) + "\n")
            elif kind == "diff" and argument:
                self.apply(line, argument, rows)
            elif kind not in ("text", "cmake"):
                self.fail(line, f"a block of a kind that is not known: {' '.join(words)}")
        if not self.count:
            self.fail(1, "there are no blocks")
        shutil.rmtree(self.folder)
        return 1 if self.failures else 0


def main():
    p = argparse.ArgumentParser()
    p.add_argument("page")
    p.add_argument("--tilewright", required=True)
    p.add_argument("--cc", default="cc")
    p.add_argument("--include", default="include")
    p.add_argument("--library")
    sys.exit(Page(p.parse_args()).follow())


main()
