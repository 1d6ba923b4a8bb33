"""The C interface, declared once: structures of tilewright.h and dlpack.h, functions, errors."""
import ctypes as C
import os

P = C.POINTER


class DLDevice(C.Structure):
    _fields_ = [("device_type", C.c_int32), ("device_id", C.c_int32)]


class DLDataType(C.Structure):
    _fields_ = [("code", C.c_uint8), ("bits", C.c_uint8), ("lanes", C.c_uint16)]


class DLTensor(C.Structure):
    _fields_ = [("data", C.c_void_p), ("device", DLDevice), ("ndim", C.c_int32),
                ("dtype", DLDataType), ("shape", P(C.c_int64)), ("strides", P(C.c_int64)),
                ("byte_offset", C.c_uint64)]


class DLManagedTensor(C.Structure):
    pass


DELETER = C.CFUNCTYPE(None, P(DLManagedTensor))
DLManagedTensor._fields_ = [("dl_tensor", DLTensor), ("manager_ctx", C.c_void_p),
                            ("deleter", DELETER)]


class Diagnostic(C.Structure):
    _fields_ = [("id", C.c_char_p), ("is_warning", C.c_bool), ("file", C.c_char_p),
                ("line", C.c_int), ("column", C.c_int), ("text", C.c_char_p), ("hint", C.c_char_p)]


class LastError(C.Structure):
    _fields_ = [("status", C.c_int), ("text", C.c_char_p), ("diagnostics", P(Diagnostic)),
                ("diagnostic_count", C.c_size_t)]


class Value(C.Union):
    _fields_ = [("tensor", P(DLTensor)), ("i", C.c_int64), ("f", C.c_double), ("text", C.c_char_p)]


class Arg(C.Structure):
    _fields_ = [("name", C.c_char_p), ("kind", C.c_int), ("value", Value)]


ARG_TENSOR, ARG_INT, ARG_FLOAT, ARG_BOOL, ARG_TEXT = range(5)


class Sized(C.Structure):
    """A structure of the interface that begins with its size; the rest starts as 0."""

    def __init__(self, **values):
        super().__init__(size=C.sizeof(type(self)), **values)


LOG = C.CFUNCTYPE(None, C.c_void_p, C.c_int, C.c_char_p)


class Config(Sized):
    _fields_ = [("size", C.c_size_t), ("store_path", C.c_char_p), ("tune", C.c_int),
                ("tune_budget_s", C.c_double), ("threads", C.c_int), ("log", LOG),
                ("log_user", C.c_void_p), ("log_level", C.c_int), ("checked", C.c_bool),
                ("seeds_path", C.c_char_p)]


class DeviceInfo(Sized):
    _fields_ = [("size", C.c_size_t), ("spec", C.c_char_p), ("name", C.c_char_p),
                ("target", C.c_char_p), ("features", C.c_char_p), ("threads", C.c_int),
                ("l1_bytes", C.c_size_t), ("l2_bytes", C.c_size_t), ("memory", DLDevice),
                ("driver", C.c_char_p), ("capability", C.c_int), ("memory_bytes", C.c_size_t),
                ("block_shared_bytes", C.c_int), ("block_threads", C.c_int),
                ("registers", C.c_int)]


class ParamInfo(Sized):
    _fields_ = [("size", C.c_size_t), ("name", C.c_char_p), ("kind", C.c_int),
                ("direction", C.c_int), ("type", C.c_char_p), ("rank", C.c_int),
                ("dims", C.c_char_p * 8), ("has_default", C.c_bool),
                ("value", C.c_char_p)]


class LaunchOptions(Sized):
    _fields_ = [("size", C.c_size_t), ("config", C.c_char_p), ("f64", C.c_bool),
                ("running_max_low", C.c_bool), ("program_first", C.c_int64),
                ("program_count", C.c_int64), ("quiet", C.c_bool)]


class Answer(Sized):
    _fields_ = [("size", C.c_size_t), ("layer", C.c_int), ("config", C.c_char * 256),
                ("seconds", C.c_double), ("artifact_stored", C.c_bool), ("compile_s", C.c_double),
                ("code_bytes", C.c_size_t), ("ir_ops", C.c_int), ("text_lines", C.c_int),
                ("programs", C.c_int64)]


class TuneProgress(C.Structure):
    _fields_ = [("tried", C.c_size_t), ("total", C.c_size_t), ("best_s", C.c_double),
                ("elapsed_s", C.c_double), ("budget_s", C.c_double), ("phase", C.c_char_p)]


PROGRESS = C.CFUNCTYPE(C.c_bool, C.c_void_p, P(TuneProgress))


class TuneOptions(Sized):
    _fields_ = [("size", C.c_size_t), ("budget_s", C.c_double), ("config", C.c_char_p),
                ("again", C.c_bool), ("progress", PROGRESS), ("progress_user", C.c_void_p)]


class TrialRow(C.Structure):
    _fields_ = [("config", C.c_char * 256), ("state", C.c_int), ("median_s", C.c_double),
                ("spread_s", C.c_double), ("samples", C.c_int), ("reason", C.c_char * 160)]


class CompileOptions(Sized):
    _fields_ = [("size", C.c_size_t), ("target", C.c_char_p), ("emit", C.c_char_p),
                ("set", C.c_char_p), ("dump", C.c_char_p), ("time", C.c_bool),
                ("profile", C.c_char_p)]


# The C name of each structure, for the test that compares their layouts with the header's.
C_NAMES = {DLTensor: "DLTensor", DLManagedTensor: "DLManagedTensor", Diagnostic: "tw_diagnostic",
           LastError: "tw_error", Arg: "tw_arg", Config: "tw_config", DeviceInfo: "tw_device_info",
           ParamInfo: "tw_param_info", LaunchOptions: "tw_launch_options", Answer: "tw_answer",
           TuneProgress: "tw_tune_progress", TuneOptions: "tw_tune_options", TrialRow: "tw_trial",
           CompileOptions: "tw_compile_options"}

HANDLE, STATUS = C.c_void_p, C.c_int
ARGS = [P(Arg), C.c_size_t]
FUNCTIONS = {  # name: (result, arguments)
    "tw_version": (C.c_char_p, []),
    "tw_status_name": (C.c_char_p, [STATUS]),
    "tw_last_error": (P(LastError), []),
    "tw_config_from_env": (STATUS, [P(Config)]),
    "tw_context_create": (STATUS, [P(Config), P(HANDLE)]),
    "tw_context_destroy": (None, [HANDLE]),
    "tw_device_open": (STATUS, [HANDLE, C.c_char_p, P(HANDLE)]),
    "tw_device_close": (None, [HANDLE]),
    "tw_device_force_target": (STATUS, [HANDLE, C.c_char_p]),
    "tw_device_query": (STATUS, [HANDLE, P(DeviceInfo)]),
    "tw_stream_sync": (STATUS, [HANDLE, HANDLE]),
    "tw_kernel_load": (STATUS, [HANDLE, C.c_char_p, C.c_char_p, P(HANDLE)]),
    "tw_kernel_load_text": (STATUS, [HANDLE, C.c_char_p, C.c_char_p, C.c_size_t, C.c_char_p,
                                     P(HANDLE)]),
    "tw_kernel_destroy": (None, [HANDLE]),
    "tw_kernel_name": (C.c_char_p, [HANDLE]),
    "tw_kernel_warnings": (C.c_char_p, [HANDLE]),
    "tw_kernel_set_checked": (STATUS, [HANDLE]),
    "tw_kernel_param_count": (C.c_size_t, [HANDLE]),
    "tw_kernel_param": (STATUS, [HANDLE, C.c_size_t, P(ParamInfo)]),
    "tw_kernel_shape": (STATUS, [HANDLE] + ARGS + [C.c_char_p, P(C.c_int), P(C.c_int64),
                                                   P(DLDataType)]),
    "tw_launch_with": (STATUS, [HANDLE, HANDLE, HANDLE] + ARGS + [P(LaunchOptions)]),
    "tw_query": (STATUS, [HANDLE, HANDLE] + ARGS + [P(LaunchOptions), P(Answer)]),
    "tw_kernel_specialize": (STATUS, [HANDLE, HANDLE] + ARGS + [P(LaunchOptions), P(HANDLE)]),
    "tw_bound_launch": (STATUS, [HANDLE, HANDLE] + ARGS),
    "tw_bound_destroy": (None, [HANDLE]),
    "tw_layer_text": (C.c_char_p, [C.c_int]),
    "tw_tune": (STATUS, [HANDLE, HANDLE] + ARGS + [P(TuneOptions), P(HANDLE)]),
    "tw_tune_report_destroy": (None, [HANDLE]),
    "tw_tune_report_count": (C.c_size_t, [HANDLE]),
    "tw_tune_report_trial": (P(TrialRow), [HANDLE, C.c_size_t]),
    "tw_tune_report_winner": (C.c_size_t, [HANDLE]),
    "tw_tune_report_default": (C.c_size_t, [HANDLE]),
    "tw_tune_report_compiled": (C.c_size_t, [HANDLE]),
    "tw_tune_report_layer": (C.c_int, [HANDLE]),
    "tw_kernel_compile": (STATUS, [HANDLE, P(CompileOptions), P(C.c_void_p), P(C.c_size_t)]),
    "tw_free": (None, [C.c_void_p]),
}


class Error(Exception):
    """A call failed. status: its name ("E_SOURCE"); diagnostics: dicts with id, file, line, column,
    text, hint and is_warning; str() is the rendered text."""

    def __init__(self, status, text, diagnostics=()):
        super().__init__(text)
        self.status = status
        self.diagnostics = list(diagnostics)


SONAME = "libtilewright.so.0.1"  # of an installed library whose structs are those above


def library_path():
    """The library that is used."""
    given = os.environ.get("TILEWRIGHT_LIBRARY")
    if given:
        return given
    here = os.path.dirname(os.path.abspath(__file__))
    beside = os.path.join(here, "..", "..", "build", "lib", "libtilewright.so")
    if os.path.exists(beside):
        return os.path.normpath(beside)
    return SONAME


def _load():
    path = library_path()
    try:
        loaded = C.CDLL(path)
    except OSError as problem:
        raise ImportError(f"the Tilewright library cannot be loaded from {path}: {problem}; build "
                          "and install it (and run ldconfig), or let TILEWRIGHT_LIBRARY name it") from problem
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


lib = _load()


def version():
    """The library's version."""
    return lib.tw_version().decode()


def text_of(s):
    return s.decode(errors="replace") if s else None


def check(status):
    """Raises Error when a call failed."""
    if status == 0:
        return
    e = lib.tw_last_error().contents
    rows = [{"id": text_of(d.id), "is_warning": d.is_warning, "file": text_of(d.file),
             "line": d.line, "column": d.column, "text": text_of(d.text), "hint": text_of(d.hint)}
            for d in (e.diagnostics[i] for i in range(e.diagnostic_count))]
    raise Error(text_of(lib.tw_status_name(status)), text_of(e.text) or "", rows)
