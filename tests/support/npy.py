"""Makes and checks .npy files, without NumPy.

npy.py make FILE DESCR SHAPE EXPRESSION [OPTION=VALUE...]
    element i (in the order of the file) is the value of the Python expression over i;
    options: version=1, fortran=False, keep=1.0 (part of the file that is written)
npy.py check FILE SHAPE EXPRESSION
    fails unless FILE has this shape, and element i the value of the expression within 1e-5
"""
import ast
import math
import struct
import sys

CODES = {"f4": "f", "f8": "d", "i1": "b", "u1": "B", "b1": "?", "i2": "h", "i4": "i", "i8": "q",
         "u8": "Q", "f2": "e"}
NAMES = {"math": math, "inf": math.inf, "nan": math.nan}


def value(expression, i):
    return eval(expression, dict(NAMES, i=i))


def make(path, descr, shape, expression, *options):
    option = dict(o.split("=") for o in options)
    shape = ast.literal_eval(shape)
    count = math.prod(shape)
    order = ">" if descr[0] == ">" else "<"
    code = order + str(count) + CODES[descr[1:]]
    data = struct.pack(code, *(value(expression, i) for i in range(count)))
    fortran = option.get("fortran", "False")
    text = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n".encode()
    version = int(option.get("version", "1"))
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    whole = b"\x93NUMPY" + bytes([version, 0]) + length + text + data
    with open(path, "wb") as f:
        f.write(whole[: int(len(whole) * float(option.get("keep", "1")))])


def check(path, shape, expression):
    with open(path, "rb") as f:
        whole = f.read()
    assert whole[:8] == b"\x93NUMPY\x01\x00", whole[:8]
    (length,) = struct.unpack("<H", whole[8:10])
    header = ast.literal_eval(whole[10 : 10 + length].decode())
    assert header["shape"] == ast.literal_eval(shape), header
    count = math.prod(header["shape"])
    got = struct.unpack("<" + str(count) + CODES[header["descr"][1:]], whole[10 + length :])
    for i, x in enumerate(got):
        want = value(expression, i)
        same = x == want or (math.isnan(x) and math.isnan(want))
        assert same or abs(x - want) <= 1e-5 * max(1.0, abs(want)), (i, x, want)


{"make": make, "check": check}[sys.argv[1]](*sys.argv[2:])
