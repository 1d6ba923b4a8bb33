"""The Python package with tensors on a GPU, over the one in software, whose memory is the host's."""
import contextlib
import ctypes as C
import sys
import types
import unittest
import unittest.mock

import numpy as np

import tilewright as tw
from tilewright import _abi

ADD = """
kernel add[T: float](x: T[N], y: T[N], out z: T[N])
tune BLOCK in {64, 32}
grid (cdiv(N, BLOCK))
{
    let at = program_id(0) * BLOCK;
    store(z[at :+ BLOCK], load(x[at :+ BLOCK]) + load(y[at :+ BLOCK]));
}
"""
N, CUDA = 100, 2
new_capsule = C.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = C.py_object, [C.c_void_p, C.c_char_p, C.c_void_p]
allocate = _abi.lib.tw_memory_alloc
allocate.argtypes = [C.c_void_p, C.c_size_t, C.POINTER(C.c_void_p)]
give_back = _abi.lib.tw_memory_free
give_back.restype, give_back.argtypes = None, [C.c_void_p, C.c_void_p]


class Array:
    """Floats on a GPU, with DLPack's protocol and no more; .host is the same memory."""

    def __init__(self, device, values):
        self.device, self.index, self.asked, at = device, device.info["memory"][1], [], C.c_void_p()
        _abi.check(allocate(device, 4 * len(values), C.byref(at)))
        self.host = np.ctypeslib.as_array((C.c_float * len(values)).from_address(at.value))
        self.host[:] = values
        self.shape = (C.c_int64 * 1)(len(values))
        self.managed = _abi.DLManagedTensor(_abi.DLTensor(at, (CUDA, self.index), 1, (2, 32, 1),
                                                          self.shape, None, 0))

    def __dlpack__(self, *, stream=None):
        self.asked.append(stream)
        return new_capsule(C.addressof(self.managed), b"dltensor", None)

    def __dlpack_device__(self):
        return CUDA, self.index

    def __del__(self):
        give_back(self.device, self.managed.dl_tensor.data)


class Tensor(Array):
    """As much of PyTorch's as the package asks for. It refuses what is not on the current GPU."""
    is_cuda = True
    current = 0

    def __dlpack__(self, *, stream=None):
        if self.index != Tensor.current:
            raise BufferError("Can't export tensors on a different CUDA device index.")
        return super().__dlpack__(stream=stream)

    def is_neg(self):
        return False

    def detach(self):
        return self


class OnAGpu(unittest.TestCase):
    def setUp(self):
        self.cx = tw.Context()
        self.add = self.cx.load_text(ADD)
        self.gpus = [self.cx.device(f"cuda:{i}") for i in range(2)]
        self.x, self.y = np.arange(N, dtype="f4"), np.full(N, 7, "f4")

    def arrays(self, gpu, kind=Array):
        return [kind(self.gpus[gpu], values) for values in (self.x, self.y, np.full(N, np.nan))]

    def test_it_runs_where_the_tensors_are(self):
        for gpu in (0, 1):
            x, y, z = self.arrays(gpu)
            out = self.add(x=x, y=y, z=z)
            self.assertIs(out.z, z)
            self.gpus[gpu].sync()
            np.testing.assert_array_equal(z.host, self.x + self.y)
            self.assertEqual((x.asked, y.asked, z.asked), ([-1], [-1], [-1]))  # nobody waits

    def test_bound_and_tuned(self):
        x, y, z = self.arrays(0)
        report = self.add.tune(x=x, y=y, z=z, budget=5.0)
        self.assertEqual((report.winner.state, report.layer), ("ok", "tuned now"))
        self.assertTrue(np.isnan(z.host).all())  # outputs are the tuner's own
        self.assertEqual(self.add.query({"x": x, "y": y, "z": z})["config"], report.winner.config)
        self.add.bind({"x": x, "y": y, "z": z})(x=x, y=y, z=z)
        self.gpus[0].sync()
        np.testing.assert_array_equal(z.host, self.x + self.y)

    def raises(self, problem, said, **args):
        with self.assertRaisesRegex(problem, said):
            self.add(**args)

    def test_wrong_places(self):
        x, y, z = self.arrays(0)
        there = Array(self.gpus[1], self.y)
        self.raises(tw.Error, "'y' is in memory of DLPack device type 1", x=x, y=self.y, z=z)
        self.raises(tw.Error, "'y' is in memory of .* number 1, which device 'cuda:0'",
                    x=x, y=there, z=z)
        self.raises(TypeError, "outputs can be allocated for NumPy arrays and PyTorch", x=x, y=y)
        with self.assertRaisesRegex(tw.Error, "'x' is in memory of DLPack device type 1"):
            self.add.launch({"x": self.x, "y": self.y, "z": self.y}, device=self.gpus[0])
        z.managed.dl_tensor.data = self.x.ctypes.data  # says that it is on the GPU
        try:
            self.raises(tw.Error, "'z'", x=x, y=y, z=z)
        finally:
            z.managed.dl_tensor.data = z.host.ctypes.data
        self.assertTrue(np.isnan(z.host).all())

    def test_tensors_of_pytorch(self):
        """Their outputs are allocated beside them, on their device's current stream."""
        asked = []

        def current_stream(device):
            asked.append(device)
            return types.SimpleNamespace(cuda_stream=0)

        def empty(shape, dtype, device):
            self.assertEqual((tuple(shape), dtype), ((N,), "f32"))
            return Tensor(device, np.full(N, np.nan))

        @contextlib.contextmanager
        def make_current(device):
            before, Tensor.current = Tensor.current, device.info["memory"][1]
            yield
            Tensor.current = before

        torch = types.SimpleNamespace(Tensor=Tensor, empty=empty, float32="f32",
                                      cuda=types.SimpleNamespace(current_stream=current_stream,
                                                                 device=make_current))
        with unittest.mock.patch.dict(sys.modules, torch=torch):
            x, y, z = self.arrays(1, Tensor)
            out = self.add(x=x, y=y)
            self.gpus[1].sync()
            np.testing.assert_array_equal(out.z.host, self.x + self.y)
            self.assertEqual((out.z.index, asked), (1, [self.gpus[1]]))
            self.add.launch({"x": x, "y": y, "z": z}, stream=0)  # given: nobody is asked
            self.assertEqual((len(asked), Tensor.current), (1, 0))


if __name__ == "__main__":
    unittest.main()
