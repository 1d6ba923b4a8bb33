"""Contexts, devices, kernels and what calls give back."""
import collections
import ctypes as C
import os
import threading

from . import _abi, _tensors
from ._abi import check, lib, text_of

Parameter = collections.namedtuple("Parameter", "name kind direction type dims has_default value")
Parameter.__doc__ = """A parameter as tw_param_info has it; value: its default, or what is tried, as text, or None."""
Trial = collections.namedtuple("Trial", "config state median_s spread_s samples reason")
Report = collections.namedtuple("Report", "winner default trials layer compiled")
Report.__doc__ = """What tuning found. winner, default: a Trial; trials: all; layer: who knew it; compiled: how many
configurations were for it."""
_KINDS = ("tensor", "scalar", "const", "tune")
_DIRECTIONS = ("in", "out", "inout")
_STATES = ("ok", "stopped", "pruned", "failed", "wrong", "skipped")
_LEVELS = ("error", "warning", "info", "debug", "print")
_TUNE = ("never", "on-miss")


def _index(names, name, what):
    if name not in names:
        raise ValueError(f"{what} is one of {', '.join(names)}, not {name!r}")
    return names.index(name)


def _bytes_of(text, what):
    """Text as the library takes it: as UTF-8, ended by a NUL."""
    if not isinstance(text, str):
        raise TypeError(f"{what} is a text, not a {type(text).__name__}")
    data = text.encode()
    if b"\0" in data:
        raise ValueError(f"{what} has a NUL in it")
    return data


def _path_of(path):
    data = os.fsencode(path)
    if b"\0" in data:
        raise ValueError("a path has a NUL in it")
    return data


def _stream_of(stream):
    if stream is not None and not isinstance(stream, int):
        raise TypeError(f"a stream is a handle, an int, not a {type(stream).__name__}")
    return stream


def _optional(text, what):
    return None if text is None or text == "" else _bytes_of(text, what)


class Outputs(dict):
    """The output tensors of a call by name, those passed and those allocated; out.o is out["o"]."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the kernel has no output '{name}'; it has "
                                 f"{', '.join(self)}") from None


class _Handle:
    """Owns an object of the library and what it depends on.

    Python may collect several at once, and finalize them in any order: one that others still depend on
    is given back by the last of those.
    """

    def __init__(self, destroy, *keeps):
        self._as_parameter_ = C.c_void_p()
        self._destroy, self._keeps = destroy, ()
        self._users, self._dropped = 0, False
        for handle in keeps:
            self._keep(handle)

    def _keep(self, handle):
        handle._users += 1
        self._keeps += (handle,)

    @property
    def _out(self):
        return C.byref(self._as_parameter_)

    def _open(self):
        """Itself; raises when it was closed."""
        if self._dropped:
            raise ValueError(f"this {type(self).__name__.lower()} is closed")
        return self

    def close(self):
        """Gives the object back; if others depend on it, with the last of them. Twice does nothing."""
        self._dropped = True
        if self._users:
            return
        if self._as_parameter_.value:
            self._destroy(self._as_parameter_)
            self._as_parameter_ = C.c_void_p()
        keeps, self._keeps = self._keeps, ()
        for handle in keeps:
            handle._users -= 1
            if handle._dropped and not handle._users:
                handle.close()

    def __del__(self):
        if hasattr(self, "_users"):
            self.close()


class Context(_Handle):
    """Settings, the store and everything loaded.

    store: a file that remembers configurations and code, None for none, or "env" for what the
      environment says (TILEWRIGHT_STORE, else the user's cache).
    tune: "never" or "on-miss" (a first launch tunes, within budget seconds).
    log: called with a level and a text, from any thread. Levels are "error", "warning", "info" and
      "debug", of which those up to level are told, and "print": what a kernel prints.
    """

    def __init__(self, store=None, tune="never", budget=10.0, threads=0, log=None, level="warning"):
        super().__init__(lib.tw_context_destroy)
        config = _abi.Config(tune=_index(_TUNE, tune, "tune"), tune_budget_s=budget,
                             threads=threads, log_level=_index(_LEVELS[:4], level, "level"))
        if store == "env":
            check(lib.tw_config_from_env(C.byref(config)))
        elif store is not None:
            config.store_path = _path_of(store)
        if log is not None:
            self._log = _abi.LOG(lambda user, at, text: log(_LEVELS[at], text_of(text)))
            config.log = self._log
        self._devices, self._lock = {}, threading.Lock()
        check(lib.tw_context_create(C.byref(config), self._out))

    def device(self, spec="auto", target=None):
        """Opens "auto", "cpu", "cpu:N" (threads), "cuda:N" or "interp"; target forces a code path."""
        return Device(self._open(), spec, target)

    def load(self, path, kernel=None):
        """A kernel from a file of kernel text or tile IR; its name, or the file's only one."""
        return Kernel(self._open(), lib.tw_kernel_load, _path_of(path), kernel)

    def load_text(self, text, kernel=None, name="text.tw"):
        """A kernel from a string; name is used in messages."""
        data = _bytes_of(text, "a kernel's text")
        return Kernel(self._open(), lib.tw_kernel_load_text, _bytes_of(name, "name"), data,
                      len(data), kernel)

    def _device_of(self, device, tensors):
        """A Device is itself; a text is opened once; None: where the tensors are."""
        if isinstance(device, Device):
            return device._open()
        spec = device
        if device is None:
            spec = _tensors.device_spec(tensors[0].device) if tensors else "auto"
        _bytes_of(spec, "a device")
        with self._lock:
            if spec not in self._devices:
                self._devices[spec] = Device(self, spec)
            return self._devices[spec]

    def close(self):
        devices, self._devices = getattr(self, "_devices", {}), {}
        for device in devices.values():
            device.close()
        super().close()


class Device(_Handle):
    """A place to run: Context.device opens one."""

    def __init__(self, context, spec, target=None):
        super().__init__(lib.tw_device_close, context)
        check(lib.tw_device_open(context, _bytes_of(spec, "a device"), self._out))
        if target is not None:
            check(lib.tw_device_force_target(self, _bytes_of(target, "target")))

    @property
    def info(self):
        """A dict: spec, name, target, features, threads, l1_bytes, l2_bytes, ... memory is the
        DLPack device of its tensors, as (type, index)."""
        info = _abi.DeviceInfo()
        check(lib.tw_device_query(self._open(), C.byref(info)))
        found = {n: getattr(info, n) for n, _ in info._fields_[1:]}
        found["memory"] = info.memory.device_type, info.memory.device_id
        return {n: text_of(x) if isinstance(x, bytes) else x for n, x in found.items()}

    def sync(self, stream=None):
        """Waits for the work of a stream (its handle); raises what failed in it."""
        check(lib.tw_stream_sync(self._open(), _stream_of(stream)))


class Kernel(_Handle):
    """A kernel as loaded. Call it with its arguments by name to run it; see the package's page.
    None is as good as an argument that is left out.

    A launch's options, for parameters of the kernel that have such a name use `launch`:
      device: a Device, or its name as for Context.device; by default the one that holds the first
        tensor.
      stream: a stream's handle, an int; by default PyTorch's current one on a GPU, else the default
        stream.
      config: "BLOCK_M=64,..." pins what it names and tunes nothing.
    """

    def __init__(self, context, load, *arguments):
        super().__init__(lib.tw_kernel_destroy, context)
        *head, kernel = arguments
        check(load(context, *head, _optional(kernel, "kernel"), self._out))
        self.context = context
        self.name = text_of(lib.tw_kernel_name(self))
        self.warnings = text_of(lib.tw_kernel_warnings(self))
        self.parameters = [self._parameter(i) for i in range(lib.tw_kernel_param_count(self))]
        tensors = [p for p in self.parameters if p.kind == "tensor"]
        self._outputs = [p.name for p in tensors if p.direction == "out"]
        self._written = {p.name for p in tensors if p.direction != "in"}
        self._inputs = {p.name for p in tensors if p.direction != "out"}

    def _parameter(self, i):
        row = _abi.ParamInfo()
        check(lib.tw_kernel_param(self, i, C.byref(row)))
        return Parameter(text_of(row.name), _KINDS[row.kind], _DIRECTIONS[row.direction],
                         text_of(row.type), [text_of(d) for d in row.dims[:row.rank]],
                         row.has_default, text_of(row.value))

    def set_checked(self):
        """Asserts before each access and integer division what it needs (an index inside of its
        tensor, no 0): a launch that does not keep to it raises with line, values and program. Slower;
        before the first launch. Returns the kernel."""
        check(lib.tw_kernel_set_checked(self._open()))
        return self

    def __repr__(self):
        return f"<kernel {self.name}({', '.join(p.name for p in self.parameters)})>"

    def __call__(self, *positional, **arguments):
        """Runs the kernel; returns its Outputs."""
        if positional:
            names = [p.name for p in self.parameters if p.kind == "tensor" and p.direction != "out"]
            raise TypeError(f"{self.name} takes its arguments by name: "
                            f"{', '.join(n + '=...' for n in names)}")
        return self.launch(arguments)

    def launch(self, arguments, *, device=None, stream=None, config=None, programs=None):
        """Runs the kernel on a dict of arguments; returns its Outputs. programs = (first, count)
        runs that part of the grid only."""
        call = _Call(self, arguments, device, stream)
        first, count = programs or (0, 0)
        options = _abi.LaunchOptions(config=_optional(config, "config"),
                                     program_first=first, program_count=count)
        check(lib.tw_launch_with(self, call.device, call.stream, call.args, len(call.args),
                                 C.byref(options)))
        return call.outputs

    def query(self, arguments, *, device=None, config=None):
        """What a launch would use: a dict with layer, config, seconds, compile_s, ...; compiles."""
        call = _Call(self, arguments, device, None)
        options = _abi.LaunchOptions(config=_optional(config, "config"))
        answer = _abi.Answer()
        check(lib.tw_query(self, call.device, call.args, len(call.args), C.byref(options),
                           C.byref(answer)))
        found = {n: getattr(answer, n) for n, _ in answer._fields_[1:]}
        found["layer"] = text_of(lib.tw_layer_text(answer.layer))
        found["config"] = text_of(answer.config)
        return found

    def bind(self, arguments, *, device=None, config=None):
        """Fixes compile-time values and the configuration: the fastest way to launch many times."""
        return Bound(self, arguments, device, config)

    def tune(self, arguments=None, *, device=None, budget=60.0, config=None, again=False,
             progress=None, **named):
        """Searches the fastest configuration for these arguments, within budget seconds, and stores
        it; returns a Report. progress(tried, total, best_s, elapsed_s, phase) may return False to
        stop."""
        call = _Call(self, dict(arguments or {}, **named), device, None)
        raised = []

        def on_progress(user, at):
            p = at.contents
            try:
                return progress(p.tried, p.total, p.best_s, p.elapsed_s,
                                text_of(p.phase)) is not False
            except BaseException as e:  # handed to the caller when the library is back
                raised.append(e)
                return False

        options = _abi.TuneOptions(budget_s=budget, again=again,
                                   config=_optional(config, "config"))
        if progress:
            options.progress = _abi.PROGRESS(on_progress)
        report = C.c_void_p()
        status = lib.tw_tune(self, call.device, call.args, len(call.args), C.byref(options),
                             C.byref(report))
        try:
            if raised:
                raise raised[0]
            check(status)
            return _report(report)
        finally:
            lib.tw_tune_report_destroy(report)

    def compile(self, target, emit, set=None, profile=None):
        """One stage of the compiler ("tir", "ll", "asm", "ptx", "explain", ...) as bytes, without
        tensors. set: "T=f32,D=128,BLOCK_M=64". profile: the GPU that the code is for, "rtx4080", or a
        file; the target may then be None."""
        options = _abi.CompileOptions(target=_optional(target, "target"), emit=_bytes_of(emit, "emit"),
                                      set=_optional(set, "set"), profile=_optional(profile, "profile"))
        data, size = C.c_void_p(), C.c_size_t()
        check(lib.tw_kernel_compile(self._open(), C.byref(options), C.byref(data), C.byref(size)))
        try:
            return C.string_at(data, size.value)
        finally:
            lib.tw_free(data)


class Bound(_Handle):
    """A kernel bound to a device, compile-time values and a configuration: Kernel.bind makes one.
    Call it with tensors and scalars by name; scalars that are left out keep their default. It
    returns nothing."""

    def __init__(self, kernel, arguments, device, config):
        super().__init__(lib.tw_bound_destroy, kernel)
        call = _Call(kernel, arguments, device, None)
        options = _abi.LaunchOptions(config=_optional(config, "config"))
        self._device = call.device
        self._keep(call.device)
        self._order = [p.name for p in kernel.parameters if p.kind in ("tensor", "scalar")]
        self._kernel = kernel
        check(lib.tw_kernel_specialize(kernel, call.device, call.args, len(call.args),
                                       C.byref(options), self._out))

    def __call__(self, *, stream=None, **arguments):
        for name in arguments:
            if name not in self._order:
                raise TypeError(f"'{name}' is not a tensor or scalar of {self._kernel.name}; "
                                f"those are {', '.join(self._order)}")
        count = max((self._order.index(n) + 1 for n in arguments), default=0)
        ordered = {n: arguments.get(n) for n in self._order[:count]}  # None keeps a place
        call = _Call(self._kernel, ordered, self._device, stream, allocate=False)
        check(lib.tw_bound_launch(self._open(), call.stream, call.args, len(call.args)))


class _Call:
    """The arguments of one call in the library's form: args, device, stream, outputs."""

    def __init__(self, kernel, arguments, device, stream, allocate=True):
        arrays = [x for x in arguments.values() if _tensors.is_tensor(x)]
        borrowed = {n: _tensors.Borrowed(x) for n, x in arguments.items() if _tensors.is_tensor(x)}
        for name in kernel._written.intersection(borrowed):
            if _tensors.is_read_only(arguments[name]):
                raise ValueError(f"argument '{name}' is written, but its array is read-only")
        self._keeps = borrowed
        # what is bound keeps its device and kernel, closed or not
        self.device = device if not allocate else kernel._open().context._device_of(
            device, list(borrowed.values()))
        self.stream = _tensors.current_stream(arrays) if stream is None else _stream_of(stream)
        self.args = self._form(arguments)
        if allocate:
            missing = [n for n in kernel._outputs if arguments.get(n) is None]
            if missing and arrays and kernel._inputs.issubset(borrowed):  # else the launch complains
                arguments = dict(arguments, **self._allocate(kernel, missing, arrays[0]))
                self.args = self._form(arguments)
            self.outputs = Outputs((p.name, arguments[p.name]) for p in kernel.parameters
                                   if p.direction != "in" and arguments.get(p.name) is not None)

    def _allocate(self, kernel, names, like):
        made = {}
        for name in names:
            rank, dims, dtype = C.c_int(), (C.c_int64 * 8)(), _abi.DLDataType()
            check(lib.tw_kernel_shape(kernel, self.args, len(self.args), name.encode(),
                                      C.byref(rank), dims, C.byref(dtype)))
            made[name] = _tensors.new_like(like, tuple(dims[:rank.value]), dtype)
            self._keeps[name] = _tensors.Borrowed(made[name])
        return made

    def _form(self, arguments):
        args = (_abi.Arg * len(arguments))()
        for arg, (name, x) in zip(args, arguments.items()):
            arg.name = _bytes_of(name, "the name of an argument")
            if name in self._keeps:
                arg.kind = _abi.ARG_TENSOR
                arg.value.tensor = C.pointer(self._keeps[name].tensor)
            elif x is None:  # left out
                arg.kind, arg.value.text = _abi.ARG_TEXT, None
            elif isinstance(x, bool):
                arg.kind, arg.value.i = _abi.ARG_BOOL, x
            elif isinstance(x, str):
                arg.kind, arg.value.text = _abi.ARG_TEXT, _bytes_of(x, f"argument '{name}'")
            elif isinstance(x, float):
                arg.kind, arg.value.f = _abi.ARG_FLOAT, x
            elif hasattr(x, "__index__") and not isinstance(x, type):
                self._form_int(arg, x.__index__())
            elif hasattr(x, "__float__") and not isinstance(x, type):
                arg.kind, arg.value.f = _abi.ARG_FLOAT, float(x)
            else:
                raise TypeError(f"argument '{name}' is a {type(x).__name__}: a tensor, a number, "
                                "a bool or a text is needed (a dtype is a text, as \"f32\" is, "
                                "and so is a function, as \"s * 2.0\" is)")
        return args

    @staticmethod
    def _form_int(arg, x):
        """As text where it is wider than the library's number, whose matter it is what fits."""
        if -2**63 <= x < 2**63:
            arg.kind, arg.value.i = _abi.ARG_INT, x
        else:
            arg.kind, arg.value.text = _abi.ARG_TEXT, str(x).encode()


def _report(handle):
    def trial(i):
        t = lib.tw_tune_report_trial(handle, i).contents
        return Trial(text_of(t.config), _STATES[t.state], t.median_s, t.spread_s, t.samples,
                     text_of(t.reason))

    trials = [trial(i) for i in range(lib.tw_tune_report_count(handle))]
    return Report(trials[lib.tw_tune_report_winner(handle)],
                  trials[lib.tw_tune_report_default(handle)], trials,
                  text_of(lib.tw_layer_text(lib.tw_tune_report_layer(handle))),
                  lib.tw_tune_report_compiled(handle))
