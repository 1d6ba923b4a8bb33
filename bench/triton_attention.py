"""FlashAttention-2 forward in Triton, as its users write it: the algorithm of Triton's fused-attention
tutorial (two stages over the keys, softmax in base 2, delayed normalisation), autotuned over 24
configurations. A peer of the benchmarks, not a part of Tilewright."""
import torch
import triton
import triton.language as tl

CONFIGS = [triton.Config({"BLOCK_M": m, "BLOCK_N": n}, num_stages=s, num_warps=w)
           for m in (64, 128) for n in (32, 64, 128) for s in (2, 3) for w in (4, 8)]


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


@triton.autotune(configs=CONFIGS, key=["N", "D", "CAUSAL"])
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
    qk_scale = scale * 1.4426950408889634
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


def forward(q, k, v, causal):
    """softmax(q k^T / sqrt(D)) v of contiguous [B, H, N, D] tensors."""
    b, h, n, d = q.shape
    o = torch.empty_like(q)
    lse = torch.empty(b, h, n, dtype=torch.float32, device=q.device)
    _forward[lambda c: (triton.cdiv(n, c["BLOCK_M"]), b * h)](
        q, k, v, o, lse, d ** -0.5, q.stride(2), q.stride(1), n, d, causal)
    return o
