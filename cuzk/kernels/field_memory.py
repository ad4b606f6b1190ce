"""Loads and stores of field elements: rows of a uint64 array to values, one lane or eight.

`load(form, array, i)` reads the elements of rows i, i+1, ... (as many as the form has lanes), whose words
begin at column 0; `load_at` at another column; `load_apart` rows at equal distances. `gather` reads scattered
rows by *codes*: `row << 1 | negative`. Eight rows of 52-bit limbs are transposed in registers (24 shuffles);
packed Fr rows take 8 shuffles and a change of radix.
Rows of 52-bit limbs lie at multiples of 64 bytes; all arrays are C-contiguous.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, overload

from cuzk.kernels.codegen import radix52
from cuzk.kernels.codegen.llvm import I64, LANES, VECTOR
from cuzk.kernels.field_type import Element, FieldForm, FormType, Mask, machine, pack_words, unpack_words

I32 = ir.IntType(32)
_HALF_VECTOR = ir.VectorType(I64, LANES // 2)  # one packed row of Fr
_ALIGNMENT = 64
_SPILLED_HIGH = 8  # in multiples of p: covers products in Fq2


def load_at(form: Any, array: Any, row: Any, column: Any) -> Any:
    """The elements at `column` of rows `row`, `row` + 1, ...: canonical in memory, canonical in the type."""
    raise NotImplementedError("called from compiled code only")


def store_at(form: Any, array: Any, row: Any, column: Any, x: Any) -> Any:
    """Write a canonical value to `column` of rows `row`, `row` + 1, ..."""
    raise NotImplementedError("called from compiled code only")


def gather(form: Any, array: Any, codes: Any, i: Any, column: Any) -> Any:
    """The elements at `column` of the rows that codes[i], codes[i+1], ... name."""
    raise NotImplementedError("called from compiled code only")


def word_pointer(context: Any, builder: Any, array_type: Any, array: Any, row: Any, column: Any) -> Any:
    """Address of word `column` of row `row`."""
    struct = cgutils.create_struct_proxy(array_type)(context, builder, array)
    words_a_row = cgutils.unpack_tuple(builder, struct.shape)[-1]
    offset = builder.add(builder.mul(row, words_a_row), column)
    return builder.gep(struct.data, [offset])


def _as_i64(context: Any, builder: Any, value: Any, value_type: Any) -> Any:
    return context.cast(builder, value, value_type, types.intp)


def _is_field(form: Any) -> bool:
    return isinstance(form, FormType) and isinstance(form.form, FieldForm)


@infer_global(load_at)
class _LoadAt(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        if not _is_field(args[0]):
            return None
        return signature(Element(args[0].form), args[0], args[1], types.intp, types.intp)


@infer_global(store_at)
class _StoreAt(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        if not _is_field(args[0]):
            return None
        assert args[4].carried and args[4].high == 1, args[4]
        return signature(types.void, args[0], args[1], types.intp, types.intp, args[4])


@infer_global(gather)
class _Gather(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        if not _is_field(args[0]):
            return None
        return signature(Element(args[0].form), args[0], args[1], args[2], types.intp, types.intp)


@lower_builtin(load_at, FormType, types.Array, types.Integer, types.Integer)
def _lower_load(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    form: FieldForm = sig.args[0].form
    if form.lanes == 1:
        return _load_one(context, builder, form, sig.args[1], args[1], args[2], args[3])
    if form.words == form.limbs:
        rows = [builder.add(args[2], ir.Constant(I64, lane)) for lane in range(LANES)]
        return _load_rows(context, builder, form, sig.args[1], args[1], rows, args[3])
    return _load_packed(context, builder, form, word_pointer(context, builder, sig.args[1], *args[1:4]))


@lower_builtin(gather, FormType, types.Array, types.Array, types.Integer, types.Integer)
def _lower_gather(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    form: FieldForm = sig.args[0].form
    rows = _coded_rows(context, builder, sig.args[2], args[2], args[3], form.lanes)
    if form.lanes == 1:
        return _load_one(context, builder, form, sig.args[1], args[1], rows[0], args[4])
    assert form.words == form.limbs, form
    return _load_rows(context, builder, form, sig.args[1], args[1], rows, args[4])


def _coded_rows(context: Any, builder: Any, codes_type: Any, codes: Any, i: Any, lanes: int) -> list[Any]:
    data = cgutils.create_struct_proxy(codes_type)(context, builder, codes).data
    rows = []
    for lane in range(lanes):
        code = builder.load(builder.gep(data, [builder.add(i, ir.Constant(I64, lane))]))
        rows.append(builder.zext(builder.lshr(code, ir.Constant(code.type, 1)), I64))
    return rows


def _load_one(
    context: Any, builder: Any, form: FieldForm, array_type: Any, array: Any, row: Any, col: Any
) -> Any:
    pointer = word_pointer(context, builder, array_type, array, row, col)
    words = [builder.load(builder.gep(pointer, [ir.Constant(I64, i)])) for i in range(form.words)]
    return machine(builder, form).join(words)


def _load_rows(
    context: Any, builder: Any, form: FieldForm, array_type: Any, array: Any, rows: list[Any], col: Any
) -> Any:
    vectors = []
    for row in rows:
        pointer = word_pointer(context, builder, array_type, array, row, col)
        vectors.append(builder.load(builder.bitcast(pointer, VECTOR.as_pointer()), align=_ALIGNMENT))
    return pack_words(builder, _transpose(builder, vectors)[: form.limbs], form)


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


def _load_packed(context: Any, builder: Any, form: FieldForm, pointer: Any) -> Any:
    """Eight rows of four words: two rows a vector, gathered into one vector a word, then to 52-bit limbs."""
    return _limbs_of_pairs(builder, form, [_packed_vector(builder, pointer, i) for i in range(4)])


def _limbs_of_pairs(builder: Any, form: FieldForm, z: list[Any]) -> Any:
    """Four vectors of two rows each to a value."""
    words: list[Any] = [None] * 4
    for first, order in ((0, [0, 4, 8, 12, 1, 5, 9, 13]), (2, [2, 6, 10, 14, 3, 7, 11, 15])):
        a, b = _shuffle(builder, z[0], z[1], order), _shuffle(builder, z[2], z[3], order)
        words[first] = _shuffle(builder, a, b, [0, 1, 2, 3, 8, 9, 10, 11])
        words[first + 1] = _shuffle(builder, a, b, [4, 5, 6, 7, 12, 13, 14, 15])
    return pack_words(builder, radix52.unpack64(machine(builder, form), words, form.limbs), form)


def _packed_vector(builder: Any, pointer: Any, i: int) -> Any:
    place = builder.gep(pointer, [ir.Constant(I64, LANES * i)])
    return builder.load(builder.bitcast(place, VECTOR.as_pointer()), align=8)


@lower_builtin(store_at, FormType, types.Array, types.Integer, types.Integer, Element)
def _lower_store(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    form: FieldForm = sig.args[0].form
    pointer = word_pointer(context, builder, sig.args[1], *args[1:4])
    if form.lanes == 1:
        for i, word in enumerate(machine(builder, form).split(args[4], form.words)):
            builder.store(word, builder.gep(pointer, [ir.Constant(I64, i)]))
    elif form.words == form.limbs:
        _store_rows(context, builder, sig.args[1], args, unpack_words(builder, args[4], form))
    else:
        words = radix52.pack64(machine(builder, form), unpack_words(builder, args[4], form), form.words)
        _store_packed(builder, pointer, words)
    return context.get_dummy_value()


def _store_rows(context: Any, builder: Any, array_type: Any, args: Any, limbs: list[Any]) -> None:
    for lane, vector in enumerate(_transpose(builder, limbs)):
        row = builder.add(args[2], ir.Constant(I64, lane))
        pointer = word_pointer(context, builder, array_type, args[1], row, args[3])
        builder.store(vector, builder.bitcast(pointer, VECTOR.as_pointer()), align=_ALIGNMENT)


def _store_packed(builder: Any, pointer: Any, words: list[Any]) -> None:
    pairs = [
        [_shuffle(builder, words[0], words[1], order), _shuffle(builder, words[2], words[3], order)]
        for order in ([0, 8, 1, 9, 2, 10, 3, 11], [4, 12, 5, 13, 6, 14, 7, 15])
    ]
    for half, (low, high) in enumerate(pairs):
        for j, order in enumerate(([0, 1, 8, 9, 2, 3, 10, 11], [4, 5, 12, 13, 6, 7, 14, 15])):
            place = builder.gep(pointer, [ir.Constant(I64, LANES * (2 * half + j))])
            vector = _shuffle(builder, low, high, order)
            builder.store(vector, builder.bitcast(place, VECTOR.as_pointer()), align=8)


def load(form: Any, array: Any, row: Any) -> Any:
    """The elements of rows `row`, `row` + 1, ... at column 0."""
    raise NotImplementedError("called from compiled code only")


def store(form: Any, array: Any, row: Any, x: Any) -> Any:
    """Write a canonical value to rows `row`, `row` + 1, ... at column 0."""
    raise NotImplementedError("called from compiled code only")


@overload(load)
def _overload_load(form, array, row):
    return lambda form, array, row: load_at(form, array, row, 0)


@overload(store)
def _overload_store(form, array, row, x):
    return lambda form, array, row, x: store_at(form, array, row, 0, x)


@intrinsic
def _spill(typingctx: Any, form: Any, scratch: Any, i: Any, x: Any) -> Any:
    assert x.carried and x.high <= _SPILLED_HIGH, x

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        write_place(context, builder, sig, args)
        return context.get_dummy_value()

    return types.void(form, scratch, i, x), lower


@intrinsic
def _unspill(typingctx: Any, form: Any, scratch: Any, i: Any) -> Any:
    result = Element(form.form) if form.form.lanes == 1 else Element(form.form, 0, _SPILLED_HIGH)

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return read_place(context, builder, sig, args)

    return result(form, scratch, i), lower


def _place_pointer(context: Any, builder: Any, sig: Any, args: Any, element: Any) -> Any:
    """Address of place args[2] of scratch args[1]; a place is `limbs` values of type `element`."""
    field: FieldForm = sig.args[0].form
    data = cgutils.create_struct_proxy(sig.args[1])(context, builder, args[1]).data
    place = _as_i64(context, builder, args[2], sig.args[2])
    first = builder.mul(place, ir.Constant(I64, field.limbs))
    return builder.gep(builder.bitcast(data, element.as_pointer()), [first])


def write_place(context: Any, builder: Any, sig: Any, args: Any) -> None:
    """Store the limbs of value args[3], whatever their state, at place args[2] of scratch args[1]."""
    field: FieldForm = sig.args[0].form
    if field.lanes == 1:
        limbs, alignment, element = machine(builder, field).split(args[3], field.limbs), 8, I64
    else:
        limbs, alignment, element = unpack_words(builder, args[3], field), _ALIGNMENT, VECTOR
    pointer = _place_pointer(context, builder, sig, args, element)
    for k, limb in enumerate(limbs):
        builder.store(limb, builder.gep(pointer, [ir.Constant(I64, k)]), align=alignment)


def read_place(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """The limbs that `write_place` stored, as a value."""
    field: FieldForm = sig.args[0].form
    alignment, element = (8, I64) if field.lanes == 1 else (_ALIGNMENT, VECTOR)
    pointer = _place_pointer(context, builder, sig, args, element)
    places = [builder.gep(pointer, [ir.Constant(I64, k)]) for k in range(field.limbs)]
    limbs = [builder.load(place, align=alignment) for place in places]
    return machine(builder, field).join(limbs) if field.lanes == 1 else pack_words(builder, limbs, field)


def spill(form: Any, scratch: Any, i: Any, x: Any) -> None:
    """Put a carried value into place i of a scratch array, as the registers hold it: cheaper than `store`.

    scratch  1-D uint64, 64-byte aligned; a place has limbs * lanes words (twice that in Fq2)
    """
    raise NotImplementedError("called from compiled code only")


def unspill(form: Any, scratch: Any, i: Any) -> Any:
    """The value that `spill` put into place i."""
    raise NotImplementedError("called from compiled code only")


@overload(spill)
def _overload_spill(form, scratch, i, x):
    if not _is_field(form):
        return None
    return lambda form, scratch, i, x: _spill(form, scratch, i, x)


@overload(unspill)
def _overload_unspill(form, scratch, i):
    return (lambda form, scratch, i: _unspill(form, scratch, i)) if _is_field(form) else None


@intrinsic
def load_apart(typingctx: Any, form: Any, array: Any, row: Any, step: Any) -> Any:
    """The elements of rows row, row + step, row + 2*step, ... of a form with packed rows."""
    field: FieldForm = form.form
    assert field.lanes == 1 or field.words != field.limbs, field

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        row_value = _as_i64(context, builder, args[2], row)
        step_value = _as_i64(context, builder, args[3], step)
        zero = ir.Constant(I64, 0)
        if field.lanes == 1:
            return _load_one(context, builder, field, array, args[1], row_value, zero)
        rows = [builder.add(row_value, builder.mul(step_value, ir.Constant(I64, i))) for i in range(LANES)]
        halves = []
        for lane_row in rows:
            pointer = word_pointer(context, builder, array, args[1], lane_row, zero)
            halves.append(builder.load(builder.bitcast(pointer, _HALF_VECTOR.as_pointer()), align=8))
        order = ir.Constant(ir.VectorType(I32, LANES), list(range(LANES)))
        pairs = [builder.shuffle_vector(halves[i], halves[i + 1], order) for i in range(0, LANES, 2)]
        return _limbs_of_pairs(builder, field, pairs)

    return Element(field)(form, array, row, step), lower


@intrinsic
def sign_mask(typingctx, form, codes, i):
    """Mask of the lanes whose code codes[i + lane] is marked negative."""
    lanes = form.form.lanes

    def lower(context, builder, sig, args):
        data = cgutils.create_struct_proxy(codes)(context, builder, args[1]).data
        place = builder.gep(data, [_as_i64(context, builder, args[2], i)])
        element = context.get_data_type(codes.dtype)
        if lanes == 1:
            return builder.trunc(builder.load(place), ir.IntType(1))
        vector = ir.VectorType(element, lanes)
        loaded = builder.load(builder.bitcast(place, vector.as_pointer()), align=codes.dtype.bitwidth // 8)
        return builder.trunc(loaded, ir.VectorType(ir.IntType(1), lanes))

    return Mask(lanes)(form, codes, i), lower


@intrinsic
def prefetch(typingctx, form, array, codes, i):
    """Ask for the cache lines of the whole rows that codes[i], codes[i+1], ... name."""
    lanes = form.form.lanes

    def lower(context, builder, sig, args):
        index = _as_i64(context, builder, args[3], i)
        for row in _coded_rows(context, builder, codes, args[2], index, lanes):
            for line in range(_lines_a_row(form.form)):
                column = ir.Constant(I64, line * _ALIGNMENT // 8)
                _emit_prefetch(builder, word_pointer(context, builder, array, args[1], row, column))
        return context.get_dummy_value()

    return types.void(form, array, codes, i), lower


@intrinsic
def prefetch_rows(typingctx: Any, form: Any, array: Any, row: Any) -> Any:
    """Ask for the cache lines that `load` or `store` at row `row` will touch; it may lie beyond the array."""
    words = form.form.words * form.form.lanes
    columns = [*range(0, words, _ALIGNMENT // 8), words - 1]  # arrays need not begin on a line: one line more

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        index = _as_i64(context, builder, args[2], row)
        for column in columns:
            place = ir.Constant(I64, column)
            _emit_prefetch(builder, word_pointer(context, builder, array, args[1], index, place))
        return context.get_dummy_value()

    return types.void(form, array, row), lower


def _emit_prefetch(builder: Any, pointer: Any) -> None:
    byte_pointer = ir.IntType(8).as_pointer()
    function_type = ir.FunctionType(ir.VoidType(), [byte_pointer, I32, I32, I32])
    function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.prefetch.p0")
    hints = [ir.Constant(I32, v) for v in (0, 3, 1)]  # read, keep in all levels, data
    builder.call(function, [builder.bitcast(pointer, byte_pointer), *hints])


def _lines_a_row(form) -> int:
    """Cache lines of one point: two coordinates of this form."""
    return -(-2 * form.words * 8 // _ALIGNMENT)
