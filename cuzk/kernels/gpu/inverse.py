"""1/x in Fq and Fq2 for kernels of the GPU: a thread inverts alone, by division steps in batches of 30.

The method, its symbols and bounds are those of `kernels.inverse`: signed limbs of 30 bits, (f, g) exactly
and (d, e) modulo p by one 2x2 matrix a batch. Here the limbs are registers, so the code is emitted limb by
limb, and a batch jumps over runs of zero bits and clears up to six bits of g at once: w = -g/f modulo 64, as
f*(f*f - 2) = -1/f modulo 64 for odd f.
Cost       some 26 batches of 600 instructions, most of them in one chain: time is latency, about 30 us.
Source     [BY19] eprint 2019/266; the jumps as in libsecp256k1's variable-time inversion.
Twin       Python's pow(x, -1, p).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, overload, register_jitable

from cuzk.kernels import field
from cuzk.kernels.codegen.asm import WIDTH
from cuzk.kernels.field import fq2
from cuzk.kernels.field_type import Element, Fq2
from cuzk.kernels.lowering import gpu
from cuzk.kernels.modulus import FQ as FQ_MODULUS

BATCH = 30
LIMBS = 13
_CLEARED_AT_ONCE = 6
_MASK = (1 << BATCH) - 1
_P_LIMBS = FQ_MODULUS.limbs(FQ_MODULUS.p, LIMBS, BATCH)
_P_INVERSE = pow(FQ_MODULUS.p, -1, 1 << BATCH)

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_LIMBS_TYPE = types.UniTuple(types.int32, LIMBS)
_STEPS_TYPE = types.UniTuple(types.int32, 5)


def _c32(value: int) -> Any:
    return ir.Constant(_I32, value)


def _c64(value: int) -> Any:
    return ir.Constant(_I64, value)


def _parts(builder: Any, value: Any, count: int) -> list[Any]:
    return [builder.extract_value(value, i) for i in range(count)]


def _wide(builder: Any, words: list[Any]) -> list[Any]:
    return [builder.sext(word, _I64) for word in words]


def _array(builder: Any, words: list[Any]) -> Any:
    value = ir.Constant(ir.ArrayType(_I32, len(words)), ir.Undefined)
    for i, word in enumerate(words):
        value = builder.insert_value(value, word, i)
    return value


def _pair(builder: Any, first: Any, second: Any) -> Any:
    value = ir.Constant(ir.ArrayType(first.type, 2), ir.Undefined)
    return builder.insert_value(builder.insert_value(value, first, 0), second, 1)


class _Carrier:
    """Makes limbs from 64-bit column sums: 30 bits each, the last one signed."""

    def __init__(self, builder: Any) -> None:
        self._builder = builder
        self._carry: Any = _c64(0)

    def push(self, column: Any) -> Any:
        """The column's limb, with what lower columns carried."""
        total = self._builder.add(column, self._carry)
        self._carry = self._builder.ashr(total, _c64(BATCH))
        return self._builder.and_(self._builder.trunc(total, _I32), _c32(_MASK))

    @property
    def rest(self) -> Any:
        return self._builder.trunc(self._carry, _I32)


@intrinsic
def division_steps(typingctx: Any, eta: Any, f: Any, g: Any) -> Any:
    """30 division steps on the low words of f and g: (eta, u, v, q, r)."""
    return _STEPS_TYPE(types.int32, types.int32, types.int32), _lower_division_steps


def _lower_division_steps(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    before = builder.block
    loop, body, end = (builder.append_basic_block(name) for name in ("steps", "steps.odd", "steps.end"))
    builder.branch(loop)
    builder.position_at_end(loop)
    eta, f, g = args
    starts = [_c32(BATCH), eta, f, g, _c32(1), _c32(0), _c32(0), _c32(1)]
    phis = [builder.phi(_I32) for _ in starts]
    for phi, start in zip(phis, starts, strict=True):
        phi.add_incoming(start, before)
    left, eta, f, g, u, v, q, r = phis

    zeros = builder.cttz(builder.or_(g, builder.shl(_c32(-1), left)), ir.Constant(ir.IntType(1), 0))
    g = builder.lshr(g, zeros)
    u, v = builder.shl(u, zeros), builder.shl(v, zeros)
    eta, left = builder.sub(eta, zeros), builder.sub(left, zeros)
    result = _array(builder, [eta, u, v, q, r])
    builder.cbranch(builder.icmp_signed("==", left, _c32(0)), end, body)

    builder.position_at_end(body)
    swap = builder.icmp_signed("<", eta, _c32(0))
    f, g = builder.select(swap, g, f), builder.select(swap, builder.neg(f), g)
    u, q = builder.select(swap, q, u), builder.select(swap, builder.neg(u), q)
    v, r = builder.select(swap, r, v), builder.select(swap, builder.neg(v), r)
    eta = builder.select(swap, builder.neg(eta), eta)
    steps = builder.add(eta, _c32(1))  # as many until the next swap
    limit = builder.select(builder.icmp_signed("<", steps, left), steps, left)
    mask = builder.lshr(_c32(-1), builder.sub(_c32(WIDTH), limit))
    mask = builder.and_(mask, _c32((1 << _CLEARED_AT_ONCE) - 1))
    w = builder.mul(builder.mul(f, g), builder.sub(builder.mul(f, f), _c32(2)))
    w = builder.and_(w, mask)
    g = builder.add(g, builder.mul(f, w))
    q, r = builder.add(q, builder.mul(u, w)), builder.add(r, builder.mul(v, w))
    builder.branch(loop)
    for phi, value in zip(phis, [left, eta, f, g, u, v, q, r], strict=True):
        phi.add_incoming(value, builder.block)
    builder.position_at_end(end)
    return result


@intrinsic
def low_word(typingctx: Any, limbs: Any) -> Any:
    """The number modulo 2^32."""

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        first, second = (builder.extract_value(args[0], i) for i in range(2))
        return builder.add(first, builder.shl(second, _c32(BATCH)))

    return types.int32(limbs), lower


@intrinsic
def is_nonzero(typingctx: Any, limbs: Any) -> Any:
    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        any_bit, *rest = _parts(builder, args[0], LIMBS)
        for limb in rest:
            any_bit = builder.or_(any_bit, limb)
        return builder.icmp_signed("!=", any_bit, _c32(0))

    return types.boolean(limbs), lower


@intrinsic
def apply_exact(typingctx: Any, f: Any, g: Any, steps: Any) -> Any:
    """(f, g) := t (f, g) / 2^30, whose low limbs are zero by construction; t is in `steps`."""

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        f, g = (_wide(builder, _parts(builder, value, LIMBS)) for value in args[:2])
        u, v, q, r = _wide(builder, _parts(builder, args[2], 5))[1:]
        results = []
        for a, b in ((u, v), (q, r)):
            carrier, limbs = _Carrier(builder), []
            for i in range(LIMBS):
                limbs.append(carrier.push(builder.add(builder.mul(a, f[i]), builder.mul(b, g[i]))))
            results.append(_array(builder, [*limbs[1:], carrier.rest]))
        return _pair(builder, *results)

    return types.UniTuple(_LIMBS_TYPE, 2)(f, g, steps), lower


@intrinsic
def apply_modular(typingctx: Any, d: Any, e: Any, steps: Any) -> Any:
    """(d, e) := t (d, e) / 2^30 mod p: multiples of p lift negative inputs and clear the low limb."""

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        d, e = (_wide(builder, _parts(builder, value, LIMBS)) for value in args[:2])
        u, v, q, r = _wide(builder, _parts(builder, args[2], 5))[1:]
        sign_d, sign_e = (builder.ashr(x[LIMBS - 1], _c64(63)) for x in (d, e))
        results = []
        for a, b in ((u, v), (q, r)):
            lift = builder.add(builder.and_(a, sign_d), builder.and_(b, sign_e))
            low = builder.add(builder.mul(a, d[0]), builder.mul(b, e[0]))
            clearing = builder.add(builder.mul(builder.and_(low, _c64(_MASK)), _c64(_P_INVERSE)), lift)
            lift = builder.sub(lift, builder.and_(clearing, _c64(_MASK)))
            lift = builder.sext(builder.trunc(lift, _I32), _I64)  # it fits: products stay 32 by 32 bits
            carrier, limbs = _Carrier(builder), []
            for i in range(LIMBS):
                column = builder.add(builder.mul(a, d[i]), builder.mul(b, e[i]))
                limbs.append(carrier.push(builder.add(column, builder.mul(_c64(_P_LIMBS[i]), lift))))
            results.append(_array(builder, [*limbs[1:], carrier.rest]))
        return _pair(builder, *results)

    return types.UniTuple(_LIMBS_TYPE, 2)(d, e, steps), lower


@intrinsic
def signed_to_canonical(typingctx: Any, d: Any, f: Any) -> Any:
    """d times the sign of f modulo p, in [0, p), for d in (-2p, p)."""

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        d = _parts(builder, args[0], LIMBS)
        sign_f = builder.ashr(builder.extract_value(args[1], LIMBS - 1), _c32(31))
        d = _lifted(builder, d)
        d = _carried(builder, [builder.sub(builder.xor(x, sign_f), sign_f) for x in d])
        return _array(builder, _lifted(builder, d))

    return _LIMBS_TYPE(d, f), lower


def _lifted(builder: Any, limbs: list[Any]) -> list[Any]:
    """The number plus p if it is negative."""
    sign = builder.ashr(limbs[LIMBS - 1], _c32(31))
    return _carried(
        builder,
        [
            builder.add(limb, builder.and_(sign, _c32(part)))
            for limb, part in zip(limbs, _P_LIMBS, strict=True)
        ],
    )


def _carried(builder: Any, limbs: list[Any]) -> list[Any]:
    """Limbs of 30 bits and a signed last one from small signed ones."""
    carry, result = _c32(0), []
    for limb in limbs[:-1]:
        total = builder.add(limb, carry)
        result.append(builder.and_(total, _c32(_MASK)))
        carry = builder.ashr(total, _c32(BATCH))
    return [*result, builder.add(limbs[-1], carry)]


@register_jitable
def invert_limbs(g, zero_limbs):  # type: ignore[no-untyped-def]
    """1/g mod p on limbs, 0 for 0; variable time. `zero_limbs` is the number 0."""
    f, d, e = _modulus_limbs(), zero_limbs, _one_limbs()
    eta = types.int32(-1)
    while is_nonzero(g):
        steps = division_steps(eta, low_word(f), low_word(g))
        eta = steps[0]
        f, g = apply_exact(f, g, steps)
        d, e = apply_modular(d, e, steps)
    return signed_to_canonical(d, f)


def _constant_limbs(value: int) -> Any:
    limbs = FQ_MODULUS.limbs(value, LIMBS, BATCH)

    @intrinsic
    def constant(typingctx: Any) -> Any:
        def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return ir.Constant(ir.ArrayType(_I32, LIMBS), limbs)

        return _LIMBS_TYPE(), lower

    return constant


_zero_limbs, _one_limbs, _modulus_limbs = map(_constant_limbs, (0, 1, FQ_MODULUS.p))


@intrinsic
def _split_limbs(typingctx: Any, x: Any) -> Any:
    """The number that an element's words hold, as limbs of 30 bits."""

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        words = [*gpu.limbs_of(builder, x.form, args[0]), _c32(0)]
        limbs = []
        for i in range(LIMBS):
            word, shift = divmod(BATCH * i, WIDTH)
            limb = builder.lshr(words[word], _c32(shift))
            if shift > WIDTH - BATCH:
                limb = builder.or_(limb, builder.shl(words[word + 1], _c32(WIDTH - shift)))
            limbs.append(builder.and_(limb, _c32(_MASK)))
        return _array(builder, limbs)

    return _LIMBS_TYPE(x), lower


@intrinsic
def _join_limbs(typingctx: Any, form: Any, limbs: Any) -> Any:
    """The element whose words hold this number."""

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        limbs = _parts(builder, args[1], LIMBS)
        words = []
        for i in range(form.form.limbs):
            limb, shift = divmod(WIDTH * i, BATCH)
            word = builder.lshr(limbs[limb], _c32(shift))
            for k in range(1, 3):
                if limb + k < LIMBS and BATCH * k - shift < WIDTH:
                    word = builder.or_(word, builder.shl(limbs[limb + k], _c32(BATCH * k - shift)))
            words.append(word)
        return gpu.value_of(builder, form.form, words)

    return Element(form.form)(form, limbs), lower


def inverse_gpu(form: Any, x: Any) -> Any:
    """1/x in Montgomery form, 0 for 0. All threads of a warp wait for the slowest."""
    raise NotImplementedError("called from compiled code only")


@overload(inverse_gpu)
def _inverse_fq(form, x):  # type: ignore[no-untyped-def]
    if not (isinstance(x, Element) and field.is_field(form)):
        return None
    return lambda form, x: (
        _join_limbs(form, invert_limbs(_split_limbs(x), _zero_limbs())) * field.r_cubed(form)
    )


@overload(inverse_gpu)
def _inverse_fq2(form, x):  # type: ignore[no-untyped-def]
    """1/(c0 + c1 u) = (c0 - c1 u) / (c0^2 + c1^2)."""
    if not isinstance(x, Fq2):
        return None
    base = form.form.base

    def impl(form, x):  # type: ignore[no-untyped-def]
        norm_inverse = inverse_gpu(base, field.sqr(x.c0) + field.sqr(x.c1))
        return fq2(x.c0 * norm_inverse, field.zero(base) - x.c1 * norm_inverse)

    return impl
