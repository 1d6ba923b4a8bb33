"""Tensors: what callers hand over, as DLTensor views, and new ones for outputs."""
import ctypes as C
import sys

from ._abi import DLManagedTensor, DLTensor

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13  # DLDeviceType
_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}         # NumPy's kind: DLDataTypeCode
_BFLOAT = 4
_NAMES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 6: "bool"}

_capsule_pointer = C.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = C.c_void_p, [C.py_object, C.c_char_p]


def is_tensor(x):
    return hasattr(x, "__dlpack__")  # NumPy's arrays have it, its scalars have not


def is_torch(x):
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def is_read_only(x):
    """Whether x is a NumPy array that may not be written; of others nobody can tell."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(x, numpy.ndarray) and not x.flags.writeable


class Borrowed:
    """A DLTensor view of an array, and what keeps it alive. Valid while this object lives."""

    def __init__(self, array):
        self.owner = array
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(array, numpy.ndarray):
            self.tensor = self._of_numpy(array)
        else:
            self.tensor = self._of_dlpack(array)

    def _of_numpy(self, a):
        """Read-only arrays and dtypes that NumPy's own DLPack refuses (bfloat16) come through too."""
        bits = a.dtype.itemsize * 8
        if a.dtype.name == "bfloat16":
            code = _BFLOAT
        elif a.dtype.kind in _CODES and a.dtype.isnative:
            code = _CODES[a.dtype.kind]
        else:
            raise TypeError(f"an array of dtype {a.dtype} is not a tensor: native integers, "
                            "floats, bfloat16 and bool are")
        self.shape = (C.c_int64 * a.ndim)(*a.shape)
        strides = []
        for step in a.strides:
            if step % a.itemsize:
                raise TypeError("the strides of an array must be multiples of its element size; "
                                "copy it first")
            strides.append(step // a.itemsize)
        self.strides = (C.c_int64 * a.ndim)(*strides)
        t = DLTensor(a.ctypes.data if a.size else None, (CPU, 0), a.ndim, (code, bits, 1),
                     self.shape, self.strides, 0)
        return t

    def _of_dlpack(self, x):
        if is_torch(x):
            if x.is_neg():  # PyTorch hands out what lies in memory, without the sign
                raise TypeError("a tensor that PyTorch negates as it is read (is_neg) does not lie "
                                "in memory as it is; resolve_neg() gives one that does")
            x = x.detach()
        self.capsule = self._capsule_of(x)
        at = _capsule_pointer(self.capsule, b"dltensor")
        self.managed = C.cast(at, C.POINTER(DLManagedTensor))
        return self.managed.contents.dl_tensor

    @staticmethod
    def _capsule_of(x):
        if x.__dlpack_device__()[0] != CUDA:
            return x.__dlpack__()
        # -1: no synchronisation; the launch goes to the stream that the tensor's work is on
        if not is_torch(x):
            return x.__dlpack__(stream=-1)
        with sys.modules["torch"].cuda.device(x.device):  # it hands out none of another GPU's
            return x.__dlpack__(stream=-1)

    @property
    def device(self):
        """(DLDeviceType, index)"""
        return self.tensor.device.device_type, self.tensor.device.device_id


def device_spec(device):
    """The library's name of a DLPack device."""
    kind, index = device
    if kind == CPU:
        return "cpu"
    if kind in (CUDA, CUDA_HOST, CUDA_MANAGED):
        return f"cuda:{index}"
    raise TypeError(f"tensors on DLPack device type {kind} cannot be used; CPU and CUDA can")


def current_stream(arrays):
    """The handle of PyTorch's current stream on the GPU of the first PyTorch tensor there, or None."""
    for x in arrays:
        if is_torch(x) and x.is_cuda:
            return sys.modules["torch"].cuda.current_stream(x.device).cuda_stream
    return None


def new_like(array, shape, dtype):
    """An uninitialised tensor of this shape and DLDataType, of array's library and device."""
    name = _NAMES[dtype.code] if dtype.code == 6 else f"{_NAMES[dtype.code]}{dtype.bits}"
    if is_torch(array):
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=getattr(torch, name), device=array.device)
    if hasattr(array, "__dlpack_device__") and array.__dlpack_device__()[0] != CPU:
        raise TypeError("outputs can be allocated for NumPy arrays and PyTorch tensors only; "
                        "pass the outputs")
    import numpy
    if dtype.code == _BFLOAT:
        import ml_dtypes
        return numpy.empty(shape, ml_dtypes.bfloat16)
    return numpy.empty(shape, numpy.dtype(name))
