"""FlashAttention-2 in Triton, as its users write it: the algorithm of Triton's fused-attention tutorial (two
stages, softmax in base 2, delayed normalisation; backward by columns for dk and dv, by rows for dq),
autotuned. A peer of the benchmarks, not a part of Tilewright.

    TRITON_INTERPRET=1 python3 bench/triton_attention.py       compares it with PyTorch, without a GPU
"""
import os

import torch
import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)


def configs(rows, columns, stages, warps):
    if os.environ.get("TRITON_INTERPRET") == "1":
        rows, columns, stages, warps = rows[:1], columns[:1], stages[:1], warps[:1]
    return [triton.Config({"BLOCK_M": m, "BLOCK_N": n}, num_stages=s, num_warps=w)
            for m in rows for n in columns for s in stages for w in warps]


CONFIGS = configs((64, 128), (32, 64, 128), (2, 3), (4, 8))


@triton.jit
def _block(q, k_at, v_at, n0, N, row, m, l, acc, scale, stride, D: tl.constexpr,
           BLOCK_N: tl.constexpr, MASK: tl.constexpr, CAUSAL: tl.constexpr):
    col = n0 + tl.arange(0, BLOCK_N)
    d = tl.arange(0, D)
    at = col[:, None] * stride + d[None, :]
    if MASK:
        k = tl.load(k_at + at, mask=col[:, None] < N, other=0.0)
    else:
        k = tl.load(k_at + at)
    s = tl.dot(q, tl.trans(k)) * scale
    if MASK:
        keep = col[None, :] < N
        if CAUSAL:
            keep = keep & (col[None, :] <= row[:, None])
        s = tl.where(keep, s, -1e30)
    top = tl.maximum(m, tl.max(s, 1))
    p = tl.math.exp2(s - top[:, None])
    alpha = tl.math.exp2(m - top)
    l = l * alpha + tl.sum(p, 1)
    acc = acc * alpha[:, None]
    if MASK:
        v = tl.load(v_at + at, mask=col[:, None] < N, other=0.0)
    else:
        v = tl.load(v_at + at)
    return top, l, tl.dot(p.to(v.dtype), v, acc)


@triton.autotune(configs=CONFIGS, key=["D", "CAUSAL"])  # once for all lengths: tuning is half a minute
@triton.jit
def _forward(q, k, v, o, lse, scale, stride, head_stride, N, D: tl.constexpr, CAUSAL: tl.constexpr,
             BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    m0 = tl.program_id(0) * BLOCK_M
    base = tl.program_id(1).to(tl.int64) * head_stride
    row = m0 + tl.arange(0, BLOCK_M)
    d = tl.arange(0, D)
    at = row[:, None] * stride + d[None, :]
    tq = tl.load(q + base + at, mask=row[:, None] < N, other=0.0)
    m = tl.full([BLOCK_M], -1e30, tl.float32)
    l = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, D], tl.float32)
    qk_scale = scale * LOG2E
    whole = (m0 + 1 if CAUSAL else N) // BLOCK_N * BLOCK_N
    seen = tl.minimum(m0 + BLOCK_M, N) if CAUSAL else N
    for n0 in tl.range(0, whole, BLOCK_N):
        m, l, acc = _block(tq, k + base, v + base, n0, N, row, m, l, acc, qk_scale, stride, D,
                           BLOCK_N, False, CAUSAL)
    for n0 in tl.range(whole, seen, BLOCK_N):
        m, l, acc = _block(tq, k + base, v + base, n0, N, row, m, l, acc, qk_scale, stride, D,
                           BLOCK_N, True, CAUSAL)
    tl.store(o + base + at, (acc / l[:, None]).to(tq.dtype), mask=row[:, None] < N)
    tl.store(lse + tl.program_id(1) * N + row, m * 0.6931471805599453 + tl.log(l), mask=row < N)


# Backward. Of one block: what dk, dv or dq get from it. p is recomputed from the log-sum-exp.


@triton.jit
def _gradients(q, k, v, do, lse, delta, row, col, scale, N, MASK: tl.constexpr, CAUSAL: tl.constexpr):
    """p and ds, rows by columns."""
    s = tl.dot(q, tl.trans(k)) * (scale * LOG2E)
    p = tl.math.exp2(s - lse[:, None])
    if MASK:
        keep = (row[:, None] < N) & (col[None, :] < N)
        if CAUSAL:
            keep = keep & (col[None, :] <= row[:, None])
        p = tl.where(keep, p, 0.0)
    ds = p * (tl.dot(do, tl.trans(v)) - delta[:, None])
    return p, ds


@triton.jit
def _row_block(q, do, lse, delta, row, at, N, MASK: tl.constexpr):
    if MASK:
        inside = row < N
        tq = tl.load(q + at, mask=inside[:, None], other=0.0)
        tdo = tl.load(do + at, mask=inside[:, None], other=0.0)
        tlse = tl.load(lse + row, mask=inside, other=0.0)
        tdelta = tl.load(delta + row, mask=inside, other=0.0)
    else:
        tq, tdo = tl.load(q + at), tl.load(do + at)
        tlse, tdelta = tl.load(lse + row), tl.load(delta + row)
    return tq, tdo, tlse * LOG2E, tdelta


@triton.jit
def _columns(dk, dv, tk, tv, q, do, lse, delta, begin, end, col, scale, stride, N, D: tl.constexpr,
             BLOCK_M: tl.constexpr, MASK: tl.constexpr, CAUSAL: tl.constexpr):
    d = tl.arange(0, D)
    for m0 in tl.range(begin, end, BLOCK_M):
        row = m0 + tl.arange(0, BLOCK_M)
        tq, tdo, tlse, tdelta = _row_block(q, do, lse, delta, row, row[:, None] * stride + d[None, :], N, MASK)
        p, ds = _gradients(tq, tk, tv, tdo, tlse, tdelta, row, col, scale, N, MASK, CAUSAL)
        dv = tl.dot(tl.trans(p.to(tdo.dtype)), tdo, dv)
        dk = tl.dot(tl.trans(ds.to(tq.dtype)), tq, dk)
    return dk, dv


@triton.autotune(configs=configs((32, 64), (64, 128), (2, 3), (4, 8)), key=["D", "CAUSAL"])
@triton.jit
def _backward_columns(q, k, v, do, lse, delta, dk, dv, scale, stride, head_stride, N, D: tl.constexpr,
                      CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    n0 = tl.program_id(0) * BLOCK_N
    base = tl.program_id(1).to(tl.int64) * head_stride
    lse += tl.program_id(1) * N
    delta += tl.program_id(1) * N
    col = n0 + tl.arange(0, BLOCK_N)
    at = col[:, None] * stride + tl.arange(0, D)[None, :]
    inside = col[:, None] < N
    tk = tl.load(k + base + at, mask=inside, other=0.0)
    tv = tl.load(v + base + at, mask=inside, other=0.0)
    gk = tl.zeros([BLOCK_N, D], tl.float32)
    gv = tl.zeros([BLOCK_N, D], tl.float32)
    # rows whose blocks need a mask: on the diagonal, and the ragged end
    first = n0 // BLOCK_M * BLOCK_M if CAUSAL else 0
    whole = tl.minimum(tl.cdiv(n0 + BLOCK_N, BLOCK_M) * BLOCK_M, N) if CAUSAL else 0
    last = tl.where(n0 + BLOCK_N <= N, tl.maximum(N // BLOCK_M * BLOCK_M, whole), whole)
    gk, gv = _columns(gk, gv, tk, tv, q + base, do + base, lse, delta, first, whole, col, scale, stride, N, D,
                      BLOCK_M, True, CAUSAL)
    gk, gv = _columns(gk, gv, tk, tv, q + base, do + base, lse, delta, whole, last, col, scale, stride, N, D,
                      BLOCK_M, False, CAUSAL)
    gk, gv = _columns(gk, gv, tk, tv, q + base, do + base, lse, delta, last, N, col, scale, stride, N, D,
                      BLOCK_M, True, CAUSAL)
    tl.store(dk + base + at, (gk * scale).to(tk.dtype), mask=inside)
    tl.store(dv + base + at, gv.to(tv.dtype), mask=inside)


@triton.jit
def _rows(dq, tq, tdo, tlse, tdelta, k, v, begin, end, row, scale, stride, N, D: tl.constexpr,
          BLOCK_N: tl.constexpr, MASK: tl.constexpr, CAUSAL: tl.constexpr):
    d = tl.arange(0, D)
    for n0 in tl.range(begin, end, BLOCK_N):
        col = n0 + tl.arange(0, BLOCK_N)
        at = col[:, None] * stride + d[None, :]
        if MASK:
            tk = tl.load(k + at, mask=col[:, None] < N, other=0.0)
            tv = tl.load(v + at, mask=col[:, None] < N, other=0.0)
        else:
            tk, tv = tl.load(k + at), tl.load(v + at)
        p, ds = _gradients(tq, tk, tv, tdo, tlse, tdelta, row, col, scale, N, MASK, CAUSAL)
        dq = tl.dot(ds.to(tk.dtype), tk, dq)
    return dq


@triton.autotune(configs=configs((64, 128), (32, 64), (2, 3), (4, 8)), key=["D", "CAUSAL"])
@triton.jit
def _backward_rows(q, k, v, do, lse, delta, dq, scale, stride, head_stride, N, D: tl.constexpr,
                   CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    m0 = tl.program_id(0) * BLOCK_M
    base = tl.program_id(1).to(tl.int64) * head_stride
    row = m0 + tl.arange(0, BLOCK_M)
    at = row[:, None] * stride + tl.arange(0, D)[None, :]
    tq, tdo, tlse, tdelta = _row_block(q + base, do + base, lse + tl.program_id(1) * N,
                                       delta + tl.program_id(1) * N, row, at, N, True)
    # rows past the end have p = 0 by their mask in the last part, and are not stored
    whole = (m0 + 1 if CAUSAL else N) // BLOCK_N * BLOCK_N
    seen = tl.minimum(m0 + BLOCK_M, N) if CAUSAL else N
    gq = tl.zeros([BLOCK_M, D], tl.float32)
    gq = _rows(gq, tq, tdo, tlse, tdelta, k + base, v + base, 0, whole, row, scale, stride, N, D, BLOCK_N,
               False, CAUSAL)
    gq = _rows(gq, tq, tdo, tlse, tdelta, k + base, v + base, whole, seen, row, scale, stride, N, D, BLOCK_N,
               True, CAUSAL)
    tl.store(dq + base + at, (gq * scale).to(tq.dtype), mask=row[:, None] < N)


def forward(q, k, v, causal):
    """softmax(q k^T / sqrt(D)) v of contiguous [B, H, N, D] tensors, and the rows' log-sum-exp."""
    b, h, n, d = q.shape
    o = torch.empty_like(q)
    lse = torch.empty(b, h, n, dtype=torch.float32, device=q.device)
    _forward[lambda c: (triton.cdiv(n, c["BLOCK_M"]), b * h)](
        q, k, v, o, lse, d ** -0.5, q.stride(2), q.stride(1), n, d, causal)
    return o, lse


def backward(q, k, v, o, lse, do, causal):
    b, h, n, d = q.shape
    dq, dk, dv = (torch.empty_like(t) for t in (q, k, v))
    delta = (o.float() * do.float()).sum(-1)
    step = (d ** -0.5, q.stride(2), q.stride(1), n, d, causal)
    _backward_columns[lambda c: (triton.cdiv(n, c["BLOCK_N"]), b * h)](q, k, v, do, lse, delta, dk, dv, *step)
    _backward_rows[lambda c: (triton.cdiv(n, c["BLOCK_M"]), b * h)](q, k, v, do, lse, delta, dq, *step)
    return dq, dk, dv


def compare():
    worst = 0.0
    for n, d, causal in ((64, 16, False), (150, 32, True), (129, 16, False), (200, 16, True)):
        q, k, v, do = (torch.randn(1, 2, n, d) for _ in range(4))
        wanted = [t.clone().requires_grad_() for t in (q, k, v)]
        out = torch.nn.functional.scaled_dot_product_attention(*wanted, is_causal=causal)
        out.backward(do)
        o, lse = forward(q, k, v, causal)
        got = (o, *backward(q, k, v, o, lse, do, causal))
        for name, x, y in zip(("o", "dq", "dk", "dv"), got, (out.detach(), *(t.grad for t in wanted))):
            error = (x - y).abs().max().item()
            worst = max(worst, error)
            print(f"N {n} D {d} {'causal' if causal else 'full'}: {name} differs by {error:.2g}")
    raise SystemExit(0 if worst < 1e-4 else 1)


if __name__ == "__main__":
    compare()
