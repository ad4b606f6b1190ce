"""Eight elements a value, of 52-bit limbs: an array of vectors, a vector for each limb.

The type of a value (`field_type.Element`) tracks its range: sums are loose and cost no carries, products
carry their operands first and are refused at compile time when the ranges exceed R/p. Rows of memory: 52-bit
limbs at multiples of 64 bytes, transposed in registers (24 shuffles), or packed rows of four 64-bit words (8
shuffles and a change of radix).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.core.errors import TypingError

from cuzk.kernels.codegen import radix52
from cuzk.kernels.codegen.llvm import I64, LANES, VECTOR, Radix52Llvm
from cuzk.kernels.lowering.shared import REGISTER_CALL, shared_function

WIDTH = radix52.WIDTH
limb_count = radix52.limb_count

I32 = ir.IntType(32)
_HALF_VECTOR = ir.VectorType(I64, LANES // 2)  # one packed row
_ALIGNMENT = 64
_LOOSE_LIMIT = 64  # low + high of a loose sum: its limbs stay below 2^58


def value_type(form: Any) -> Any:
    return ir.ArrayType(VECTOR, form.limbs)


def mask_type() -> Any:
    return ir.VectorType(ir.IntType(1), LANES)


def sum_type(a: Any, b: Any, sign: int) -> Any:
    low, high = (a.low + b.low, a.high + b.high) if sign > 0 else (a.low + b.high, a.high + b.low)
    if low + high > _LOOSE_LIMIT:
        raise TypingError(
            f"{a} and {b}: the range of a sum grows past {_LOOSE_LIMIT}p; use carried or canonical"
        )
    return a.with_range(low, high, carried=False)


def product_type(a: Any, b: Any) -> Any:
    if a.carried().high * b.carried().high > a.form.product_limit:
        raise TypingError(f"{a} * {b}: the product exceeds R*p; use canonical first")
    return a.with_range(0, 2)


def negation_type(a: Any) -> Any:
    reach = max(a.low, a.high)
    return a.with_range(reach, reach, carried=False)


def constant(builder: Any, form: Any, value: int) -> Any:
    return value_of(builder, form, radix52.constant(Radix52Llvm(builder), value, form.limbs))


def add(builder: Any, form: Any, a: Any, b: Any) -> Any:
    return _limbwise(builder, form, radix52.add_loose, a, b)


def sub(builder: Any, form: Any, a: Any, b: Any) -> Any:
    return _limbwise(builder, form, radix52.sub_loose, a, b)


def _limbwise(builder: Any, form: Any, program: Any, a: Any, b: Any) -> Any:
    limbs = program(Radix52Llvm(builder), limbs_of(builder, form, a), limbs_of(builder, form, b))
    return value_of(builder, form, limbs)


def product(builder: Any, form: Any, a: Any, b: Any | None) -> Any:
    """a*b of carried values; a*a, by the squaring program, without b."""
    program: Any = radix52.sqr_mont_lt_2p if b is None else radix52.mul_mont_lt_2p
    result = ir.LiteralStructType([VECTOR] * form.limbs)
    limbs = limbs_of(builder, form, a) + ([] if b is None else limbs_of(builder, form, b))

    def emit(body: Any, arguments: Any) -> Any:
        operands = [list(arguments[i : i + form.limbs]) for i in range(0, len(arguments), form.limbs)]
        value = ir.Constant(result, ir.Undefined)
        for i, word in enumerate(program(Radix52Llvm(body), *operands, form.modulus)):
            value = body.insert_value(value, word, i)
        return value

    name = f"cuzk_{'sqr' if b is None else 'mul'}_{form.name}"
    function = shared_function(builder, name, result, [VECTOR] * len(limbs), emit)
    value = builder.call(function, limbs, cconv=REGISTER_CALL)
    return value_of(builder, form, limbs_of(builder, form, value))


def sum_of_products(builder: Any, form: Any, scratch: Any, table: Any, count: Any) -> Any:
    """The sum over `count` places of scratch and rows of a limb table, from these pointers on."""
    result, words = ir.LiteralStructType([VECTOR] * form.limbs), I64.as_pointer()

    def emit(body: Any, arguments: Any) -> Any:
        places, rows, terms = arguments
        columns = [body.alloca(VECTOR) for _ in range(2 * (2 * form.limbs - 1))]
        for column in columns:
            body.store(ir.Constant(VECTOR, [0] * LANES), column)

        def halves() -> tuple[list[Any], list[Any]]:
            values = [body.load(column) for column in columns]
            return values[: len(values) // 2], values[len(values) // 2 :]

        with cgutils.for_range(body, terms) as loop:
            place = body.gep(places, [body.mul(loop.index, ir.Constant(I64, form.limbs * LANES))])
            row = body.gep(rows, [body.mul(loop.index, ir.Constant(I64, form.limbs))])
            a = limbs_of(body, form, load_limbs(body, form, place))
            b = [spread(body, body.load(body.gep(row, [ir.Constant(I64, k)]))) for k in range(form.limbs)]
            low, high = halves()
            radix52.add_product(Radix52Llvm(body), low, high, a, b)
            for value, column in zip([*low, *high], columns, strict=True):
                body.store(value, column)
        wide = radix52.join_halves(Radix52Llvm(body), *halves())
        value = ir.Constant(result, ir.Undefined)
        for i, word in enumerate(radix52.reduce_wide_lt_2p(Radix52Llvm(body), wide, form.modulus)):
            value = body.insert_value(value, word, i)
        return value

    name = f"cuzk_sum_of_products_{form.name}"
    function = shared_function(builder, name, result, [words, words, I64], emit)
    value = builder.call(function, [scratch, table, count], cconv=REGISTER_CALL)
    return value_of(builder, form, limbs_of(builder, form, value))


def carried(builder: Any, element: Any, value: Any) -> Any:
    """The value of type `element` in [0, (low + high) * p) with carried limbs."""
    if element.is_carried:
        return value
    form, m = element.form, Radix52Llvm(builder)
    lifted = radix52.add_multiple(m, limbs_of(builder, form, value), element.low, form.modulus)
    return value_of(builder, form, radix52.carry(m, lifted))


def canonical(builder: Any, element: Any, value: Any) -> Any:
    form, bound = element.form, element.carried().high
    limbs = limbs_of(builder, form, carried(builder, element, value))
    return value_of(builder, form, radix52.canonical(Radix52Llvm(builder), limbs, bound, form.modulus))


def reduced(builder: Any, element: Any, value: Any) -> Any:
    """The value of type `element` in [0, 2p) with carried limbs."""
    form, m = element.form, Radix52Llvm(builder)
    if element.is_carried and element.high <= form.row_high:
        return value
    limbs = limbs_of(builder, form, value)
    return value_of(builder, form, radix52.reduce_lt_2p(m, limbs, element.low, element.high, form.modulus))


def is_zero(builder: Any, form: Any, value: Any) -> Any:
    any_bit, *rest = limbs_of(builder, form, value)
    for limb in rest:
        any_bit = builder.or_(any_bit, limb)
    return builder.icmp_unsigned("==", any_bit, ir.Constant(VECTOR, [0] * LANES))


def select(builder: Any, form: Any, mask: Any, a: Any, b: Any) -> Any:
    pairs = zip(limbs_of(builder, form, a), limbs_of(builder, form, b), strict=True)
    return value_of(builder, form, [builder.select(mask, x, y) for x, y in pairs])


def negate_where(builder: Any, form: Any, mask: Any, value: Any) -> Any:
    limbs = limbs_of(builder, form, value)
    return value_of(builder, form, [builder.select(mask, builder.neg(limb), limb) for limb in limbs])


def mask_bits(builder: Any, mask: Any) -> Any:
    return builder.zext(builder.bitcast(mask, ir.IntType(LANES)), I64)


def limbs_of(builder: Any, form: Any, value: Any) -> list[Any]:
    return cgutils.unpack_tuple(builder, value, form.limbs)  # type: ignore[no-any-return]


def value_of(builder: Any, form: Any, limbs: list[Any]) -> Any:
    return cgutils.pack_array(builder, limbs)


def load_rows(builder: Any, form: Any, pointers: list[Any]) -> Any:
    """The elements whose rows begin at eight pointers."""
    if form.words == form.limbs:
        vectors = [_load(builder, pointer, VECTOR, _ALIGNMENT) for pointer in pointers]
        return value_of(builder, form, _transpose(builder, vectors)[: form.limbs])
    halves = [_load(builder, pointer, _HALF_VECTOR, 8) for pointer in pointers]
    order = ir.Constant(ir.VectorType(I32, LANES), list(range(LANES)))
    pairs = [builder.shuffle_vector(halves[i], halves[i + 1], order) for i in range(0, LANES, 2)]
    return _unpack_pairs(builder, form, pairs)


def store_rows(builder: Any, form: Any, value: Any, pointers: list[Any]) -> None:
    """Canonical elements to rows; packed rows must follow one another."""
    limbs = limbs_of(builder, form, value)
    if form.words == form.limbs:
        for vector, pointer in zip(_transpose(builder, limbs), pointers, strict=True):
            _store(builder, vector, pointer, _ALIGNMENT)
        return
    words = radix52.pack64(Radix52Llvm(builder), limbs, form.words)
    for i, vector in enumerate(_pack_pairs(builder, words)):
        _store(builder, vector, pointers[2 * i], 8)


def load_big_endian(builder: Any, form: Any, pointers: list[Any]) -> Any:
    """The numbers in the bytes at eight pointers, most significant first. Not a byte beyond them is read."""
    words = _encoded_words(form)
    vectors = [_swap_bytes(builder, _masked_load(builder, pointer, words)) for pointer in pointers]
    columns = _transpose(builder, vectors)[:words][::-1]
    return value_of(builder, form, radix52.unpack64(Radix52Llvm(builder), columns, form.limbs))


def store_big_endian(builder: Any, form: Any, value: Any, pointers: list[Any]) -> None:
    words = _encoded_words(form)
    columns = radix52.pack64(Radix52Llvm(builder), limbs_of(builder, form, value), words)[::-1]
    filler = [ir.Constant(VECTOR, [0] * LANES)] * (LANES - words)
    for vector, pointer in zip(_transpose(builder, columns + filler), pointers, strict=True):
        _masked_store(builder, _swap_bytes(builder, vector), pointer, words)


def encoded_type(element: Any) -> Any:
    """The type of a number that bytes may hold: the bits above the modulus may be set."""
    bits = _encoded_words(element.form) * 64
    return element.with_range(0, ((1 << bits) - 1) // element.form.modulus.p + 1)


def is_below_p(builder: Any, form: Any, value: Any) -> Any:
    m = Radix52Llvm(builder)
    p = radix52.constant(m, form.modulus.p, form.limbs)
    top = radix52.carry(m, radix52.sub_loose(m, limbs_of(builder, form, value), p))[-1]
    return builder.icmp_signed("<", top, m.const(0))


def _encoded_words(form: Any) -> int:
    return -(-int(form.modulus.bits) // 64)


def _byte_mask(words: int) -> Any:
    return ir.Constant(mask_type(), [int(i < words) for i in range(LANES)])


def _swap_bytes(builder: Any, vector: Any) -> Any:
    return builder.call(_intrinsic(builder, "llvm.bswap.v8i64", VECTOR, [VECTOR]), [vector])


def _masked_load(builder: Any, pointer: Any, words: int) -> Any:
    arguments = [VECTOR.as_pointer(), I32, mask_type(), VECTOR]
    function = _intrinsic(builder, "llvm.masked.load.v8i64.p0", VECTOR, arguments)
    place = builder.bitcast(pointer, VECTOR.as_pointer())
    filler = ir.Constant(VECTOR, [0] * LANES)
    return builder.call(function, [place, ir.Constant(I32, 1), _byte_mask(words), filler])


def _masked_store(builder: Any, vector: Any, pointer: Any, words: int) -> None:
    arguments = [VECTOR, VECTOR.as_pointer(), I32, mask_type()]
    function = _intrinsic(builder, "llvm.masked.store.v8i64.p0", ir.VoidType(), arguments)
    place = builder.bitcast(pointer, VECTOR.as_pointer())
    builder.call(function, [vector, place, ir.Constant(I32, 1), _byte_mask(words)])


def _intrinsic(builder: Any, name: str, result: Any, arguments: list[Any]) -> Any:
    return builder.module.globals.get(name) or ir.Function(
        builder.module, ir.FunctionType(result, arguments), name
    )


def load_limbs(builder: Any, form: Any, pointer: Any) -> Any:
    """A value that `store_limbs` left in scratch, `pointer` to its first word."""
    places = (builder.gep(pointer, [ir.Constant(I64, k * LANES)]) for k in range(form.limbs))
    return value_of(builder, form, [_load(builder, place, VECTOR, _ALIGNMENT) for place in places])


def store_limbs(builder: Any, form: Any, value: Any, pointer: Any) -> None:
    for k, limb in enumerate(limbs_of(builder, form, value)):
        _store(builder, limb, builder.gep(pointer, [ir.Constant(I64, k * LANES)]), _ALIGNMENT)


def spread_words(builder: Any, form: Any, words: list[Any]) -> Any:
    """The value whose limbs are these, in every lane."""
    return value_of(builder, form, [spread(builder, word) for word in words])


def spread(builder: Any, word: Any) -> Any:
    """One 64-bit word in every lane."""
    undefined = ir.Constant(VECTOR, ir.Undefined)
    vector = builder.insert_element(undefined, word, ir.Constant(I32, 0))
    return builder.shuffle_vector(vector, undefined, ir.Constant(ir.VectorType(I32, LANES), [0] * LANES))


def _load(builder: Any, pointer: Any, what: Any, alignment: int) -> Any:
    return builder.load(builder.bitcast(pointer, what.as_pointer()), align=alignment)


def _store(builder: Any, vector: Any, pointer: Any, alignment: int) -> None:
    builder.store(vector, builder.bitcast(pointer, VECTOR.as_pointer()), align=alignment)


def _shuffle(builder: Any, a: Any, b: Any, order: list[int]) -> Any:
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(I32, LANES), order))


_TRANSPOSE_STAGES = (
    (1, [0, 8, 2, 10, 4, 12, 6, 14], [1, 9, 3, 11, 5, 13, 7, 15]),
    (2, [0, 1, 8, 9, 4, 5, 12, 13], [2, 3, 10, 11, 6, 7, 14, 15]),
    (4, [0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 6, 7, 12, 13, 14, 15]),
)


def _transpose(builder: Any, vectors: list[Any]) -> list[Any]:
    """Eight vectors of eight words, rows to columns: swap 1x1, 2x2, then 4x4 blocks."""
    vectors = list(vectors)
    for distance, low_order, high_order in _TRANSPOSE_STAGES:
        for i in range(LANES):
            if not i & distance:
                a, b = vectors[i], vectors[i + distance]
                vectors[i] = _shuffle(builder, a, b, low_order)
                vectors[i + distance] = _shuffle(builder, a, b, high_order)
    return vectors


def _unpack_pairs(builder: Any, form: Any, z: list[Any]) -> Any:
    """Four vectors of two packed rows each to a value: one vector a word, then to 52-bit limbs."""
    words: list[Any] = [None] * 4
    for first, order in ((0, [0, 4, 8, 12, 1, 5, 9, 13]), (2, [2, 6, 10, 14, 3, 7, 11, 15])):
        a, b = _shuffle(builder, z[0], z[1], order), _shuffle(builder, z[2], z[3], order)
        words[first] = _shuffle(builder, a, b, [0, 1, 2, 3, 8, 9, 10, 11])
        words[first + 1] = _shuffle(builder, a, b, [4, 5, 6, 7, 12, 13, 14, 15])
    return value_of(builder, form, radix52.unpack64(Radix52Llvm(builder), words, form.limbs))


def _pack_pairs(builder: Any, words: list[Any]) -> list[Any]:
    """One vector a word to four vectors of two packed rows each."""
    pairs = [
        (_shuffle(builder, words[0], words[1], order), _shuffle(builder, words[2], words[3], order))
        for order in ([0, 8, 1, 9, 2, 10, 3, 11], [4, 12, 5, 13, 6, 14, 7, 15])
    ]
    orders = ([0, 1, 8, 9, 2, 3, 10, 11], [4, 5, 12, 13, 6, 7, 14, 15])
    return [_shuffle(builder, low, high, order) for low, high in pairs for order in orders]
