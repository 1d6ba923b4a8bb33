"""Tilewright from Python: tile kernels, compiled and tuned for the device at hand.

    import numpy as np, tilewright as tw

    cx = tw.Context()                                  # tw.Context(store="tuned.db") remembers
    attention = cx.load("kernels/attention_fwd.tw")
    q, k, v = (np.random.randn(1, 8, 512, 64).astype("f4") for _ in range(3))
    out = attention(q=q, k=k, v=v, CAUSAL=True)        # out.o, out.lse: allocated by the call
    attention.tune(q=q, k=k, v=v, CAUSAL=True)         # the next call is faster

Arguments are tensors, numbers, booleans and texts, by the kernel's names. A tensor is a NumPy array
or anything that speaks DLPack (`__dlpack__`), a PyTorch tensor among them, on the CPU or a GPU; it is
used where it lies, with its strides. Outputs that are not passed are allocated like the first tensor
argument and returned. A kernel runs on the device that holds its tensors, on PyTorch's current
stream when they are PyTorch's.

The package is this Python code over the one library (libtilewright.so), found through the variable
TILEWRIGHT_LIBRARY, in build/lib beside the package's checkout, or where the system finds libraries.
The C header tilewright.h is the reference for what everything means.
"""
from ._abi import Error, library_path, version
from ._objects import Bound, Context, Device, Kernel, Outputs, Parameter, Report, Trial

__all__ = ["Bound", "Context", "Device", "Error", "Kernel", "Outputs", "Parameter", "Report",
           "Trial", "library_path", "version"]
__version__ = version()
