"""Eight values of Fr a thread: what the passes of a transform do with them, for kernels of the GPU.

A tuple of eight elements lives in 64 registers. Where functions take `first` and `step`, value i belongs to
row first + i*step of a vector, or to entry first + i*step of a table of factors (`lowering.shoup`). Values
are canonical unless a type says [0, 2p): only products take those.
Memory     vectors are read and written once a pass, so with the hint that they need not stay in any cache.
Exchange   the block's dynamic shared memory holds 2^tile_log2 values as two planes of 16 bytes. Places are
           permuted such that eight threads whose places differ in three bits, distinct modulo 3, use all 32
           banks.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from cuzk.kernels.butterfly import transform_of
from cuzk.kernels.codegen import factor32, radix32
from cuzk.kernels.field_type import FR_GPU, Element
from cuzk.kernels.gpu.ntt_schedule import EIGHT, VALUE_BYTES
from cuzk.kernels.lowering import gpu, shoup

_QUAD_BYTES = 16
_I32, _I64 = ir.IntType(32), ir.IntType(64)
_QUAD = ir.VectorType(_I32, 4)
_SHARED_SPACE = 3
_SHARED_NAME = "cuzk_exchange"

_CANONICAL = Element(FR_GPU)
_LT_2P = Element(FR_GPU, 0, 2)


def _tuple_type(loose: frozenset[int]) -> Any:
    """Of eight values, of which those in `loose` are below 2p only."""
    if not loose:
        return types.UniTuple(_CANONICAL, EIGHT)
    if len(loose) == EIGHT:
        return types.UniTuple(_LT_2P, EIGHT)
    return types.Tuple([_LT_2P if i in loose else _CANONICAL for i in range(EIGHT)])


_EIGHT_CANONICAL = _tuple_type(frozenset())


def _values(builder: Any, eight: Any) -> list[Any]:
    return [builder.extract_value(eight, i) for i in range(EIGHT)]


def _literals(*arguments: Any) -> list[int] | None:
    """Numbers known at compile time, or None when Numba has not offered them as such."""
    if not all(isinstance(argument, types.IntegerLiteral) for argument in arguments):
        return None
    return [argument.literal_value for argument in arguments]


def _wide(context: Any, builder: Any, sig: Any, args: Any, position: int) -> Any:
    return context.cast(builder, args[position], sig.args[position], types.int64)


def _stepped(builder: Any, first: Any, step: Any, unit_bytes: int) -> list[Any]:
    """Eight addresses or offsets: first + i * step * unit_bytes."""
    bytes_a_step = builder.mul(step, ir.Constant(_I64, unit_bytes))
    return [builder.add(first, builder.mul(bytes_a_step, ir.Constant(_I64, i))) for i in range(EIGHT)]


# Vectors in memory


def _operands(first: int) -> str:
    """Four operands of inline PTX in a row."""
    return ", ".join(f"${first + i}" for i in range(4))


def _row_addresses(context: Any, builder: Any, sig: Any, args: Any, at: int) -> list[Any]:
    """Of the rows that arguments `at` (a pointer), `at` + 1 (the first) and `at` + 2 (the step) describe."""
    row, step = (_wide(context, builder, sig, args, at + i) for i in (1, 2))
    base = builder.ptrtoint(args[at], _I64)
    first = builder.add(base, builder.mul(row, ir.Constant(_I64, VALUE_BYTES)))
    return _stepped(builder, first, step, VALUE_BYTES)


@intrinsic(prefer_literal=True)
def load_eight(typingctx: Any, vector: Any, first: Any, step: Any) -> Any:
    """Eight rows of a vector, a pointer to uint32 words."""

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        text = "\n".join(
            f"ld.global.cs.v4.u32 {{{_operands(4 * quad)}}}, [$8+{quad * _QUAD_BYTES}];" for quad in range(2)
        )
        result = ir.LiteralStructType([_I32] * shoup.LIMBS)
        function = ir.FunctionType(result, [_I64])
        loaded = []
        for address in _row_addresses(context, builder, sig, args, 0):
            words = builder.asm(function, text, ",".join(["=r"] * shoup.LIMBS + ["l"]), [address], True)
            limbs = [builder.extract_value(words, i) for i in range(shoup.LIMBS)]
            loaded.append(gpu.value_of(builder, FR_GPU, limbs))
        return context.make_tuple(builder, sig.return_type, loaded)

    return _EIGHT_CANONICAL(vector, first, step), lower


@intrinsic(prefer_literal=True)
def store_eight(typingctx: Any, vector: Any, first: Any, step: Any, eight: Any) -> Any:
    """Write eight canonical values to rows of a vector."""
    assert eight == _EIGHT_CANONICAL, eight

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        text = "\n".join(
            f"st.global.cs.v4.u32 [$0+{quad * _QUAD_BYTES}], {{{_operands(4 * quad + 1)}}};"
            for quad in range(2)
        )
        function = ir.FunctionType(ir.VoidType(), [_I64] + [_I32] * shoup.LIMBS)
        addresses = _row_addresses(context, builder, sig, args, 0)
        for address, value in zip(addresses, _values(builder, args[3]), strict=True):
            words = [address, *gpu.limbs_of(builder, FR_GPU, value)]
            builder.asm(function, text, ",".join(["l"] + ["r"] * shoup.LIMBS + ["~{memory}"]), words, True)
        return context.get_dummy_value()

    return types.void(vector, first, step, eight), lower


# Exchange between the threads of a block


def _permuted(builder: Any, place: Any) -> Any:
    """The place that a value's number gets: the lowest three bits change with three groups of bits above."""
    folded = place
    for shift in (3, 6, 9):
        folded = builder.xor(folded, builder.lshr(place, ir.Constant(_I32, shift)))
    low = ir.Constant(_I32, EIGHT - 1)
    return builder.or_(builder.and_(place, ir.Constant(_I32, ~(EIGHT - 1))), builder.and_(folded, low))


def _permuted_constant(place: int) -> int:
    return place & ~7 | (place ^ place >> 3 ^ place >> 6 ^ place >> 9) & 7


def _exchange_places(builder: Any, first: Any, shift: int) -> list[Any]:
    """Byte offsets of the values first + (i << shift), where first's bits shift to shift + 2 are 0."""
    place = builder.mul(_permuted(builder, builder.trunc(first, _I32)), ir.Constant(_I32, _QUAD_BYTES))
    constants = (_permuted_constant(i << shift) * _QUAD_BYTES for i in range(EIGHT))
    return [builder.xor(place, ir.Constant(_I32, constant)) for constant in constants]


def _exchange_pointer(builder: Any, offset: Any) -> Any:
    module = builder.module
    if _SHARED_NAME not in module.globals:
        shared = ir.GlobalVariable(module, ir.ArrayType(ir.IntType(8), 0), _SHARED_NAME, _SHARED_SPACE)
        shared.linkage, shared.align = "external", _QUAD_BYTES
    base = module.globals[_SHARED_NAME]
    place = builder.gep(base, [ir.Constant(_I32, 0), offset])
    return builder.bitcast(place, ir.PointerType(_QUAD, _SHARED_SPACE))


@intrinsic(prefer_literal=True)
def put_eight(typingctx: Any, tile_log2: Any, shift: Any, first: Any, eight: Any) -> Any:
    """Put value i at first + (i << shift) of the exchange."""
    literals = _literals(tile_log2, shift)
    if literals is None:
        return None
    plane_bytes = _QUAD_BYTES << literals[0]

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        places = _exchange_places(builder, _wide(context, builder, sig, args, 2), literals[1])
        for place, value in zip(places, _values(builder, args[3]), strict=True):
            limbs = gpu.limbs_of(builder, FR_GPU, value)
            for plane in range(2):
                quad = ir.Constant(_QUAD, ir.Undefined)
                for i in range(4):
                    quad = builder.insert_element(quad, limbs[4 * plane + i], ir.Constant(_I32, i))
                offset = builder.add(place, ir.Constant(_I32, plane * plane_bytes))
                builder.store(quad, _exchange_pointer(builder, offset), align=_QUAD_BYTES)
        return context.get_dummy_value()

    assert eight == _EIGHT_CANONICAL, eight
    return types.void(tile_log2, shift, first, eight), lower


@intrinsic(prefer_literal=True)
def take_eight(typingctx: Any, tile_log2: Any, shift: Any, first: Any) -> Any:
    """The values at first + (i << shift) of the exchange."""
    literals = _literals(tile_log2, shift)
    if literals is None:
        return None
    plane_bytes = _QUAD_BYTES << literals[0]

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        taken = []
        for place in _exchange_places(builder, _wide(context, builder, sig, args, 2), literals[1]):
            limbs = []
            for plane in range(2):
                offset = builder.add(place, ir.Constant(_I32, plane * plane_bytes))
                quad = builder.load(_exchange_pointer(builder, offset), align=_QUAD_BYTES)
                limbs += [builder.extract_element(quad, ir.Constant(_I32, i)) for i in range(4)]
            taken.append(gpu.value_of(builder, FR_GPU, limbs))
        return context.make_tuple(builder, sig.return_type, taken)

    return _EIGHT_CANONICAL(tile_log2, shift, first), lower


# Arithmetic


class _Emitting:
    """`butterfly.Arithmetic` whose values are IR."""

    def __init__(self, builder: Any) -> None:
        self._builder = builder

    def sum(self, a: Any, b: Any, loose: bool = False) -> Any:
        return self._inline(radix32.add_lt_2p if loose else radix32.add_mod, a, b)

    def difference(self, a: Any, b: Any, loose: bool = False) -> Any:
        return self._inline(radix32.sub_lt_2p if loose else radix32.sub_mod, a, b)

    def times(self, a: Any, constant: int) -> Any:
        return shoup.times_constant(self._builder, FR_GPU, a, constant)

    def _inline(self, emit: Any, a: Any, b: Any) -> Any:
        return gpu.inline(self._builder, FR_GPU, emit, a, b)


@intrinsic(prefer_literal=True)
def transform_eight(typingctx: Any, eight: Any, radix_log2: Any, inverse: Any, loose_from: Any) -> Any:
    """Transforms of 2^radix_log2 values, whose numbers differ in the top bits; outputs replace inputs.

    Outputs from number `loose_from` on are left below 2p.
    """
    literals = _literals(radix_log2, inverse, loose_from)
    if literals is None:
        return None
    apart = EIGHT >> literals[0]
    loose = frozenset(range(literals[2], EIGHT))

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        x = _values(builder, args[0])
        for begin in range(apart):
            part = frozenset(k for k, i in enumerate(range(begin, EIGHT, apart)) if i in loose)
            x[begin::apart] = transform_of(_Emitting(builder), x[begin::apart], bool(literals[1]), part)
        return context.make_tuple(builder, sig.return_type, x)

    assert eight == _EIGHT_CANONICAL, eight
    return _tuple_type(loose)(eight, radix_log2, inverse, loose_from), lower


@intrinsic(prefer_literal=True)
def twist_eight(typingctx: Any, eight: Any, begin: Any, exact: Any, table: Any, first: Any, step: Any) -> Any:
    """Values from number `begin` on times the table's entries first + i*step; step is a multiple of 8.

    The products are canonical, or below 2p if not `exact`.
    """
    literals = _literals(begin, exact)
    if literals is None:
        return None
    begin_at, is_exact = literals[0], bool(literals[1])

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        index, stride = (_wide(context, builder, sig, args, i) for i in (4, 5))
        addresses = _stepped(builder, shoup.entry_address(builder, args[3], index), stride, shoup.ENTRY_BYTES)
        x = _values(builder, args[0])
        for i in range(begin_at, EIGHT):
            x[i] = shoup.times_entry(builder, FR_GPU, x[i], addresses[i], is_exact)
        return context.make_tuple(builder, sig.return_type, x)

    loose = frozenset() if is_exact else frozenset(range(begin_at, EIGHT))
    return _tuple_type(loose)(eight, begin, exact, table, first, step), lower


@intrinsic
def multiply_eight(typingctx: Any, x: Any, y: Any) -> Any:
    """Montgomery products, pair by pair."""
    return _EIGHT_CANONICAL(x, y), _pairwise(radix32.mul_mont)


@intrinsic
def subtract_eight(typingctx: Any, x: Any, y: Any) -> Any:
    """Differences, pair by pair."""
    return _EIGHT_CANONICAL(x, y), _pairwise(radix32.sub_mod)


def _pairwise(emit: Any) -> Any:
    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pairs = zip(_values(builder, args[0]), _values(builder, args[1]), strict=True)
        results = [gpu.inline(builder, FR_GPU, emit, a, b) for a, b in pairs]
        return context.make_tuple(builder, sig.return_type, results)

    return lower


# Tables of factors


@intrinsic
def store_factor(typingctx: Any, table: Any, index: Any, plain: Any, mont: Any) -> Any:
    """Make entry `index` of a table: a factor, given in both forms."""

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        address = shoup.entry_address(builder, args[0], _wide(context, builder, sig, args, 1))
        companion = gpu.inline(builder, FR_GPU, factor32.companion, args[3])
        shoup.store_entry(builder, FR_GPU, address, args[2], companion)
        return context.get_dummy_value()

    return types.void(table, index, plain, mont), lower
