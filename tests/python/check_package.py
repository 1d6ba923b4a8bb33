"""The Python package on the CPU, with NumPy."""
import ctypes
import gc
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import types
import unittest
import unittest.mock

import numpy as np

import tilewright as tw
from tilewright import _abi

ATTENTION = "kernels/attention_fwd.tw"
SCALE = """
kernel scale[T: float](x: T[M, N], out y: T[M, N], by: f32 = 2.0)
tune BLOCK in {32, 64}
grid (cdiv(N, BLOCK), M)
{
    let n0 = program_id(0) * BLOCK, m = program_id(1);
    store(y[m, n0 :+ BLOCK], cast(cast(load(x[m, n0 :+ BLOCK]), f32) * by, T));
}
"""


def reference(q, k, v, causal):
    """Attention in float64."""
    q, k, v = (x.astype("f8") for x in (q, k, v))
    group = q.shape[1] // k.shape[1]
    k, v = (np.repeat(x, group, 1) for x in (k, v))
    s = q @ k.swapaxes(2, 3) / np.sqrt(q.shape[3])
    if causal:
        m, n = s.shape[2:]
        s = np.where(np.arange(n) <= np.arange(m)[:, None] + n - m, s, -np.inf)
    top = s.max(-1, keepdims=True)
    p = np.exp(s - top)
    return p @ v / p.sum(-1, keepdims=True), (top + np.log(p.sum(-1, keepdims=True)))[..., 0]


def random(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("f4")


class Interface(unittest.TestCase):
    def test_structures_are_those_of_the_header(self):
        lines = []
        for struct, name in _abi.C_NAMES.items():
            lines.append(f'printf("{name} size %zu\\n", sizeof({name}));')
            for field, *_ in struct._fields_:
                lines.append(f'printf("{name} {field} %zu\\n", offsetof({name}, {field}));')
        with tempfile.TemporaryDirectory() as folder:
            source, program = f"{folder}/layout.c", f"{folder}/layout"
            with open(source, "w") as f:
                f.write('#include "tilewright.h"\n#include <stdio.h>\nint main(void)\n{\n'
                        + "\n".join(lines) + "\nreturn 0;\n}\n")
            subprocess.run([os.environ.get("CC", "cc"), "-Iinclude", source, "-o", program],
                           check=True)
            printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout
        ours = []
        for struct, name in _abi.C_NAMES.items():
            ours.append(f"{name} size {ctypes.sizeof(struct)}")
            for field, *_ in struct._fields_:
                ours.append(f"{name} {field} {getattr(struct, field).offset}")
        self.assertEqual(printed.split("\n")[:-1], ours)

    def test_version(self):
        self.assertRegex(tw.version(), r"^\d+\.\d+\.\d+$")
        self.assertTrue(os.path.exists(tw.library_path()))

    def test_an_installed_library_is_found(self):
        """By its SONAME, where the loader looks, by a copy of the package that lies elsewhere."""
        folder = os.path.dirname(os.path.realpath(os.environ["TILEWRIGHT_LIBRARY"]))
        with tempfile.TemporaryDirectory() as elsewhere:
            shutil.copytree("python/tilewright", os.path.join(elsewhere, "tilewright"))
            env = dict(os.environ, PYTHONPATH=elsewhere, LD_LIBRARY_PATH=folder)
            del env["TILEWRIGHT_LIBRARY"]
            program = "import tilewright as tw; print(tw.__version__, tw.library_path())"
            printed = subprocess.run([sys.executable, "-c", program], env=env, cwd=elsewhere, check=True,
                                     capture_output=True, text=True).stdout.split()
        self.assertEqual(printed[0], tw.__version__)
        self.assertTrue(os.path.exists(os.path.join(folder, printed[1])), printed[1])


class Launches(unittest.TestCase):
    def setUp(self):
        self.cx = tw.Context()

    def tearDown(self):
        self.cx.close()

    def test_attention_allocates_its_outputs(self):
        attention = self.cx.load(ATTENTION)
        for causal in (False, True):
            q, k, v = random(2, 4, 37, 64), random(2, 2, 77, 64, seed=1), random(2, 2, 77, 64, seed=2)
            out = attention(q=q, k=k, v=v, CAUSAL=causal)
            o, lse = reference(q, k, v, causal)
            self.assertEqual(list(out), ["o", "lse"])
            self.assertLess(np.abs(out.o - o).max(), 5e-6)
            self.assertLess(np.abs(out.lse - lse).max(), 5e-6)

    def test_given_outputs_are_written_where_they_lie(self):
        scale = self.cx.load_text(SCALE)
        x = random(40, 200)[::2, 50:150]
        y = np.full((200, 20), np.nan, "f4").T[:, ::2]
        out = scale(x=x, y=y, by=3.0)
        self.assertIs(out.y, y)
        np.testing.assert_array_equal(y, x * np.float32(3.0))
        self.assertTrue(np.isnan(y.base[1::2]).all())

    def test_read_only_inputs_scalars_and_halves(self):
        scale = self.cx.load_text(SCALE)
        x = random(3, 50).astype("f2")
        x.flags.writeable = False
        np.testing.assert_array_equal(scale(x=x, by=np.float32(2)).y, x * np.float16(2))
        np.testing.assert_array_equal(scale(x=x, by=3).y, (x.astype("f4") * 3).astype("f2"))

    def test_devices_and_pinned_configurations(self):
        scale = self.cx.load_text(SCALE)
        x = random(5, 70)
        for device in (self.cx.device("interp"), self.cx.device("cpu:1"),
                       self.cx.device("cpu", target="cpu-generic")):
            y = scale.launch({"x": x}, device=device, config="BLOCK=64").y
            np.testing.assert_array_equal(y, x + x)
        self.assertEqual(self.cx.device("cpu:1").info["threads"], 1)
        self.assertIn("BLOCK=64", scale.query({"x": x, "y": x.copy()}, config="BLOCK=64")["config"])
        part = np.zeros_like(x)
        scale.launch({"x": x, "y": part}, config="BLOCK=32", programs=(0, 1))
        np.testing.assert_array_equal(part[0, :32], 2 * x[0, :32])
        self.assertEqual(np.count_nonzero(part), 32)

    def test_bound_kernels(self):
        scale = self.cx.load_text(SCALE)
        x, y = random(5, 70), np.zeros((5, 70), "f4")
        bound = scale.bind({"x": x, "y": y, "by": 2.0})
        bound(by=5.0, y=y, x=x)  # in any order
        np.testing.assert_array_equal(y, x * np.float32(5))
        bound(x=x, y=y)
        np.testing.assert_array_equal(y, x * np.float32(2))
        bound(x=x, y=y, by=None)
        np.testing.assert_array_equal(y, x * np.float32(2))
        with self.assertRaisesRegex(TypeError, "'z' is not a tensor or scalar of scale"):
            bound(x=x, y=y, z=1)
        with self.assertRaisesRegex(tw.Error, "'y'"):
            bound(x=x)

    def test_what_is_left_out_keeps_its_default(self):
        sink = self.cx.load(ATTENTION.replace("attention_fwd", "variants/attention_sink"))
        q, k, v = (random(1, 2, 33, 16, seed=i) for i in range(3))
        given = dict(q=q, k=k, v=v, sinks=random(2, seed=5))
        out = sink(**given, o=None, scale=None)
        o, lse = np.zeros_like(out.o), np.zeros_like(out.lse)
        sink.bind(dict(given, o=o, lse=lse))(**given, o=o, lse=lse)  # not scale and offset before sinks
        np.testing.assert_array_equal(o, out.o)
        with self.assertRaisesRegex(tw.Error, "'sank'"):
            sink(**given, sank=None)

    def test_threads_share_a_kernel(self):
        attention, results = self.cx.load(ATTENTION), [None] * 6
        q, k, v = (random(1, 2, 65, 32, seed=i) for i in range(3))

        def work(i):
            results[i] = attention(q=q, k=k, v=v, CAUSAL=bool(i % 2)).o

        threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        for i, o in enumerate(results):
            np.testing.assert_array_equal(o, results[i % 2])

    def test_objects_may_go_in_any_order(self):
        kernel = tw.Context().load_text(SCALE)
        gc.collect()
        x = random(1, 10)
        bound = kernel.bind({"x": x, "y": x.copy()})
        del kernel
        gc.collect()
        y = np.zeros_like(x)
        bound(x=x, y=y, by=2.0)
        np.testing.assert_array_equal(y, 2 * x)

    def test_what_a_kernel_takes(self):
        scale = self.cx.load_text(SCALE)
        rows = {p.name: p for p in scale.parameters}
        self.assertEqual(rows["y"].direction, "out")
        self.assertEqual(rows["x"].dims, ["M", "N"])
        self.assertEqual(rows["by"].kind, "scalar")
        self.assertEqual(rows["T"].kind, "const")
        self.assertEqual(rows["BLOCK"].kind, "tune")
        self.assertTrue(rows["by"].has_default)

    def test_compile(self):
        text = self.cx.load(ATTENTION).compile("cpu", "tir", "T=f32,D=64,DV=64,CAUSAL=true")
        self.assertIn(b"kernel @attention_fwd", text)

    def test_compile_for_a_gpu_that_is_not_there(self):
        kernel = self.cx.load(ATTENTION)
        given = "T=bf16,D=64,DV=64"
        self.assertIn(b".target sm_89", kernel.compile(None, "ptx", given, profile="rtx4080"))
        told = kernel.compile("sm_80", "explain", given, profile="a100").decode()
        self.assertIn("for\tsm_80\tNVIDIA A100", told)
        with self.assertRaisesRegex(tw.Error, "those that are built in: a100, h100"):
            kernel.compile(None, "ptx", given, profile="rtx1")
        with self.assertRaisesRegex(tw.Error, "takes no profile"):
            kernel.compile("cpu", "ll", given, profile="a100")


class Tuning(unittest.TestCase):
    def test_tuned_once_and_remembered(self):
        with tempfile.TemporaryDirectory() as folder:
            x, calls = random(64, 4096), []
            cx = tw.Context(store=f"{folder}/store.db")
            scale = cx.load_text(SCALE)
            report = scale.tune(x=x, y=np.empty_like(x), budget=3.0,
                                progress=lambda *at: calls.append(at))
            self.assertEqual(report.layer, "tuned now")
            self.assertGreater(report.compiled, 0)
            self.assertIn(report.winner, report.trials)
            self.assertEqual(report.winner.state, "ok")
            self.assertGreater(len(calls), 1)
            cx.close()
            again = tw.Context(store=f"{folder}/store.db")
            found = again.load_text(SCALE).query({"x": x, "y": np.empty_like(x)})
            self.assertEqual(found["config"], report.winner.config)
            self.assertEqual(found["layer"], "store: this problem, this device")
            again.close()

    def test_an_exception_in_progress_comes_back(self):
        def progress(*at):
            raise KeyError("stop")

        x = random(64, 64)
        with self.assertRaises(KeyError):
            tw.Context().load_text(SCALE).tune(x=x, y=np.empty_like(x), progress=progress)


class Mistakes(unittest.TestCase):
    def setUp(self):
        self.cx = tw.Context()
        self.scale = self.cx.load_text(SCALE)

    def raises(self, status, pattern, call, *args, **named):
        with self.assertRaisesRegex(tw.Error, pattern) as caught:
            call(*args, **named)
        self.assertEqual(caught.exception.status, status)
        return caught.exception

    def test_text(self):
        kernel = self.cx.load_text("""
kernel k(x: f32[M, 64], out y: f32[M, 64])
grid (1)
{ store(y[0 :+ 64, :], dot(zeros(f32[64, 32]), load(x[0 :+ 64, :]))); }
""")  # types depend on compile-time values: checked with the first launch
        e = self.raises("E_SOURCE", "the inner extents", kernel, x=random(64, 64))
        self.assertEqual(e.diagnostics[0]["line"], 4)
        self.assertEqual(e.diagnostics[0]["id"], "shape-mismatch")
        self.raises("E_SOURCE", "expected", self.cx.load_text, "kernel k(")

    def test_calls(self):
        x = random(4, 8)
        self.raises("E_IO", "nowhere.tw", self.cx.load, "nowhere.tw")
        self.raises("E_ARG", "'z'", self.scale, x=x, z=1)
        self.raises("E_ARG", "2 dimensions", self.scale, x=x[0])
        self.raises("E_ARG", "overlap", self.scale, x=x, y=x)
        self.raises("E_DEVICE", "nonsense", self.cx.device, "nonsense")
        with self.assertRaisesRegex(TypeError, "argument 'by' is a list"):
            self.scale(x=x, by=[1])
        with self.assertRaisesRegex(TypeError, "dtype complex64"):
            self.scale(x=x.astype("c8"))
        with self.assertRaisesRegex(AttributeError, "no output 'o'; it has y"):
            self.scale(x=x).o


    def test_values(self):
        x = random(4, 8)
        for value in (2**64, 2**63, -2**64, 2**40):
            with self.subTest(value):
                kernel = self.cx.load_text("kernel k(x: f32[N], n: i32) grid (1) { }")
                self.raises("E_ARG", f"{value}.* is not a", kernel, x=x[0], n=value)
        kernel = self.cx.load_text("kernel k(inout x: u64[1], n: u64) grid (1) { store(x[0], n); }")
        y = np.zeros(1, "u8")
        kernel(x=y, n=2**64 - 1)
        self.assertEqual(y[0], 2**64 - 1)
        with self.assertRaisesRegex(TypeError, "argument 'T' is a type: .*a dtype is a text"):
            self.scale(x=x, T=np.float32)
        with self.assertRaisesRegex(ValueError, "argument 'T' has a NUL"):
            self.scale(x=x, T="f32\0")

    def test_torch_views_that_negate(self):
        class Tensor:  # as much of PyTorch's as the package asks for
            is_cuda = False

            def __init__(self, array, negates):
                self.array, self.is_neg = array, lambda: negates

            def detach(self):
                return self

            def __dlpack__(self, **settings):
                return self.array.__dlpack__(**settings)

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

        x, y = random(4, 8), random(4, 8)
        with unittest.mock.patch.dict(sys.modules, torch=types.SimpleNamespace(Tensor=Tensor)):
            self.scale(x=Tensor(x, False), y=Tensor(y, False))
            np.testing.assert_array_equal(y, x + x)
            for args in {"x": Tensor(x, True), "y": y}, {"x": x, "y": Tensor(y, True)}:
                with self.assertRaisesRegex(TypeError, r"resolve_neg\(\) gives one"):
                    self.scale(**args)

    def test_read_only_outputs(self):
        x = random(4, 8)
        y = np.zeros_like(x)
        y.flags.writeable = False
        with self.assertRaisesRegex(ValueError, "argument 'y' is written, but its array is read-"):
            self.scale(x=x, y=y)
        with self.assertRaisesRegex(ValueError, "'y' is written"):
            self.scale.bind({"x": x, "y": x.copy()})(x=x, y=y)
        with tempfile.TemporaryDirectory() as folder:  # where a write would be a fault
            np.save(f"{folder}/y.npy", y)
            with self.assertRaisesRegex(ValueError, "'y' is written"):
                self.scale(x=x, y=np.load(f"{folder}/y.npy", mmap_mode="r"))
        self.assertEqual(np.count_nonzero(y), 0)

    def test_devices_by_name(self):
        x = random(4, 8)
        for device in ("cpu:1", "interp"):
            np.testing.assert_array_equal(self.scale.launch({"x": x}, device=device).y, x + x)
            self.scale.bind({"x": x, "y": x.copy()}, device=device)(x=x, y=x.copy())
        self.raises("E_DEVICE", "nonsense", self.scale.launch, {"x": x}, device="nonsense")
        for device in (3, b"cpu", x):
            with self.assertRaisesRegex(TypeError, "a device is a text, not a "):
                self.scale.launch({"x": x}, device=device)
        for stream in ("0", 1.5):
            with self.assertRaisesRegex(TypeError, "a stream is a handle, an int, not a "):
                self.scale.launch({"x": x}, stream=stream)

    def test_settings(self):
        with self.assertRaisesRegex(ValueError, "tune is one of never, on-miss, not 'often'"):
            tw.Context(tune="often")
        with self.assertRaisesRegex(ValueError, "level is one of error, warning, .* not 'loud'"):
            tw.Context(level="loud")
        with self.assertRaisesRegex(ValueError, "a path has a NUL"):
            self.cx.load(ATTENTION + "\0")
        with self.assertRaisesRegex(TypeError, "not NoneType"):
            self.cx.load(None)

    def test_closed(self):
        x = random(4, 8)
        bound = self.scale.bind({"x": x, "y": x.copy()})
        self.scale.close()
        bound(x=x, y=x.copy())  # keeps what it needs
        bound.close()
        for kind, use in (("bound", lambda: bound(x=x, y=x.copy())),
                          ("kernel", lambda: self.scale(x=x)),
                          ("kernel", lambda: self.scale.compile("cpu", "tir", "T=f32"))):
            with self.assertRaisesRegex(ValueError, f"this {kind} is closed"):
                use()
        device, kernel = self.cx.device("cpu"), self.cx.load_text(SCALE)
        kernel(x=x)
        device.close()
        self.cx.close()
        for kind, use in (("device", lambda: device.info), ("device", device.sync),
                          ("device", lambda: kernel.launch({"x": x}, device=device)),
                          ("context", lambda: self.cx.load_text(SCALE)),
                          ("context", lambda: self.cx.device("cpu"))):
            with self.assertRaisesRegex(ValueError, f"this {kind} is closed"):
                use()
        np.testing.assert_array_equal(kernel(x=x).y, x + x)  # keeps the context


class Newcomers(unittest.TestCase):
    """What one does wrong on the first day."""

    def setUp(self):
        self.cx = tw.Context()
        self.attention = self.cx.load(ATTENTION)
        self.q = random(1, 2, 8, 16)

    def test_by_position(self):
        with self.assertRaisesRegex(TypeError, r"by name: q=\.\.\., k=\.\.\., v=\.\.\."):
            self.attention(self.q, self.q, self.q)

    def test_an_input_is_missing(self):
        with self.assertRaisesRegex(tw.Error, "tensor 'k' of kernel 'attention_fwd' is not given"):
            self.attention(q=self.q)

    def test_a_python_function(self):
        with self.assertRaisesRegex(TypeError, "so is a function"):
            self.attention(q=self.q, k=self.q, v=self.q, score=lambda s, b, h, row, col: s)

    def test_text_as_bytes(self):
        with self.assertRaisesRegex(TypeError, "a kernel's text is a text, not a bytes"):
            self.cx.load_text(SCALE.encode())

    def test_outputs_alone(self):
        fill = self.cx.load_text("kernel fill(out y: f32[N]) grid (1) { store(y[0], 2.0); }")
        self.assertEqual(fill(y=np.zeros(1, "f4")).y[0], 2.0)
        with self.assertRaisesRegex(tw.Error, "'y'"):
            fill()

    def test_checked(self):
        behind = self.cx.load_text("kernel behind(x: f32[N], out y: f32[N]) grid (N) {\n"
                                   "    store(y[program_id(0)], load(x[program_id(0) + 1]));\n}")
        self.assertIs(behind.set_checked(), behind)
        with self.assertRaisesRegex(tw.Error, r"index 4 of dimension 0 of 'x' is outside of its "
                                    r"extent of 4 \(text.tw:2\), in program 3, 0, 0") as caught:
            behind(x=random(4))
        self.assertEqual(caught.exception.status, "E_ASSERT")
        with self.assertRaisesRegex(tw.Error, "was used before"):
            behind.set_checked()


class Logs(unittest.TestCase):
    def test_what_a_kernel_prints(self):
        lines = []
        cx = tw.Context(log=lambda level, text: lines.append((level, text)), level="error")
        kernel = cx.load_text('kernel k(x: f32[N]) grid (1) { print("extent", N); }')
        kernel(x=random(7))
        self.assertEqual([level for level, _ in lines], ["print"])
        self.assertRegex(lines[0][1], "^extent .* 7$")


class Ends(unittest.TestCase):
    # A function's module is a cycle: what its names hold is collected at the end, in any order.
    PROGRAM = f"""
import sys
import numpy as np
import tilewright as tw
cx = tw.Context()
device = cx.device("cpu:2")
kernel = cx.load_text('''{SCALE}''')
x = np.ones((4, 64), "f4")
bound = [kernel.bind(dict(x=x, y=np.empty_like(x)), device=device, config=f"BLOCK={{b}}") for b in (32, 64)]
def use(): return cx, device, kernel, bound
bound[0](x=x, y=np.empty_like(x))
kernel(x=x)
"""

    def test_whatever_is_collected_first(self):
        subprocess.run([sys.executable, "-c", self.PROGRAM], check=True)

    def test_in_a_cycle(self):
        cx = tw.Context()
        device, kernel = cx.device("cpu"), cx.load_text(SCALE)
        x = random(4, 64)
        ring = [cx, device, kernel, kernel.bind(dict(x=x, y=np.empty_like(x)), device=device)]
        ring.append(ring)
        del cx, device, kernel, ring
        gc.collect()


if __name__ == "__main__":
    unittest.main()
