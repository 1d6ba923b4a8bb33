"""What a user would call instead, on the CPU: PyTorch's SDPA, ONNX Runtime's and OpenVINO's attention.

A peer makes, for tensors q, k, v of shape [1, H, N, D], a function that runs attention once and gives
o as a tensor of float32, or None where it has no such kernel. Each gets its own preferred layout, made
before anything is timed, and the same number of threads.
"""
import importlib
import importlib.util
import os
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PACKAGES = os.path.join(ROOT, "build", "bench-packages")
NEEDED = {"torch": ["torch"], "onnxruntime": ["onnxruntime", "onnx"], "openvino": ["openvino"]}


def install(peers):
    """Makes the peers importable: what is missing goes to a folder of the benchmarks' own."""
    os.makedirs(PACKAGES, exist_ok=True)
    sys.path.append(PACKAGES)
    missing = []
    for module in ["numpy"] + [m for p in peers for m in NEEDED[p]]:
        if importlib.util.find_spec(module) is None:
            missing.append(module)
    if missing:
        print("installing", " ".join(missing), "into", PACKAGES, flush=True)
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--target", PACKAGES] + missing,
                       check=True)
        importlib.invalidate_caches()


def torch_sdpa(q, k, v, causal, threads):
    import torch
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def run():
        with torch.no_grad(), sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return run, lambda: run().float()


def ort_session(node, inputs, output, opset, threads):
    import onnx
    import onnxruntime as ort

    code = {"torch.float32": onnx.TensorProto.FLOAT, "torch.float16": onnx.TensorProto.FLOAT16}
    infos = [onnx.helper.make_tensor_value_info(n, code[str(t.dtype)], list(t.shape))
             for n, t in inputs.items()]
    out = onnx.helper.make_tensor_value_info("o", code[str(output.dtype)], list(output.shape))
    graph = onnx.helper.make_graph([node], "attention", infos, [out])
    model = onnx.helper.make_model(graph, opset_imports=[
        onnx.helper.make_opsetid("", opset), onnx.helper.make_opsetid("com.microsoft", 1)])
    model.ir_version = 10
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    binding = session.io_binding()
    for n, t in inputs.items():
        binding.bind_cpu_input(n, t.numpy())
    binding.bind_output("o")
    run = lambda: session.run_with_iobinding(binding)
    run()
    return run, lambda: binding.copy_outputs_to_cpu()[0]


def ort_multi_head(q, k, v, causal, threads):
    """com.microsoft.MultiHeadAttention, [B, N, H * D]; has a flash kernel when not causal."""
    import onnx
    import torch

    _, h, n, d = q.shape
    flat = {name: t.transpose(1, 2).reshape(1, n, h * d).contiguous()
            for name, t in (("q", q), ("k", k), ("v", v))}
    node = onnx.helper.make_node("MultiHeadAttention", ["q", "k", "v"], ["o"], domain="com.microsoft",
                                 num_heads=h, unidirectional=int(causal))
    run, got = ort_session(node, flat, flat["q"], 21, threads)
    return run, lambda: torch.from_numpy(got()).float().reshape(1, n, h, d).transpose(1, 2)


def ort_standard(q, k, v, causal, threads):
    """ONNX's own Attention, of opset 23."""
    import onnx
    import torch

    node = onnx.helper.make_node("Attention", ["q", "k", "v"], ["o"], is_causal=int(causal))
    run, got = ort_session(node, {"q": q, "k": k, "v": v}, q, 23, threads)
    return run, lambda: torch.from_numpy(got()).float()


def faster(makers, *args):
    """The fastest of those that exist for these tensors."""
    best = None
    for make in makers:
        try:
            run, result = make(*args)
        except Exception:  # each library has its own way to say that it has no such kernel
            continue
        times = []
        for _ in range(3):
            t = time.perf_counter()
            run()
            times.append(time.perf_counter() - t)
        if best is None or min(times) < best[0]:
            best = (min(times), run, result)
    return best and best[1:]


def onnxruntime_attention(q, k, v, causal, threads):
    return faster([ort_multi_head, ort_standard], q, k, v, causal, threads)


def openvino_precision(kind):
    """Without AVX512-FP16, "f16" would compute in bf16: its errors are those of bf16, ten times f16's."""
    return "f32" if kind == "f16" and "avx512_fp16" not in open("/proc/cpuinfo").read() else kind


def openvino_model(q, k, v, causal, threads):
    import numpy as np
    import openvino as ov
    import openvino.opset13 as op
    import torch

    kind = {torch.float32: ov.Type.f32, torch.float16: ov.Type.f16,
            torch.bfloat16: ov.Type.bf16}[q.dtype]
    given = [op.parameter(list(t.shape), kind) for t in (q, k, v)]
    o = op.result(op.scaled_dot_product_attention(*given, causal=causal))
    compiled = ov.Core().compile_model(ov.Model([o], given), "CPU", {
        "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": openvino_precision(kind.get_type_name())})
    request = compiled.create_infer_request()
    keep = []
    for i, t in enumerate((q, k, v)):
        array = (t.view(torch.int16) if t.dtype == torch.bfloat16 else t).numpy()
        tensor = ov.Tensor(array, list(t.shape), kind) if t.dtype == torch.bfloat16 else \
            ov.Tensor(array, shared_memory=True)
        request.set_input_tensor(i, tensor)
        keep.append((array, tensor))

    def result():
        out = request.get_output_tensor(0)
        if q.dtype != torch.bfloat16:
            return torch.from_numpy(np.array(out.data)).float()
        bits = np.frombuffer(out.data.tobytes(), dtype=np.int16).reshape(q.shape)
        return torch.from_numpy(bits.copy()).view(torch.bfloat16).float()

    run = lambda keep=keep: request.infer()
    run()
    return run, result


def openvino_attention(q, k, v, causal, threads):
    return faster([openvino_model], q, k, v, causal, threads)


PEERS = {"torch": torch_sdpa, "onnxruntime": onnxruntime_attention, "openvino": openvino_attention}


def version(peer):
    return peer + " " + importlib.import_module(peer).__version__
