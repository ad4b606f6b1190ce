"""Loads and stores of field elements: rows of a uint64 array to values, one lane or eight, Fq2 included.

`load(form, array, i)` reads the elements of rows i, i+1, ... (as many as the form has lanes), whose words
begin at column 0; `load_at` at another column; `load_apart` rows at equal distances. `gather` reads scattered
rows by *codes*: `row << 1 | negative`. Scratch is read and written in *places*, as the registers hold a
value. How rows become registers: `lowering`. All arrays are C-contiguous; rows of 52-bit limbs and scratch
begin at multiples of 64 bytes (`device.cpu.aligned_empty`).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from cuzk.kernels.codegen.llvm import I64
from cuzk.kernels.field_type import Element, Fq2, Mask, value_of_form, value_of_rows

I32 = ir.IntType(32)
_CACHE_LINE_WORDS = 8
_SPILLED_HIGH = 8  # in multiples of p: covers products in Fq2


@intrinsic
def load_at(typingctx: Any, form: Any, array: Any, row: Any, column: Any) -> Any:
    """The elements at `column` of rows `row`, `row` + 1, ..., in the range that rows have."""
    result = value_of_rows(form.form)

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        first, column_index = _index(context, builder, sig, args, 2), _index(context, builder, sig, args, 3)
        rows = _neighbours(builder, form.form, first)
        return _load(context, builder, form.form, array, args[1], rows, column_index)

    return result(form, array, row, column), lower


@intrinsic
def load(typingctx: Any, form: Any, array: Any, row: Any) -> Any:
    """The elements of rows `row`, `row` + 1, ... at column 0."""
    result = value_of_rows(form.form)

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        rows = _neighbours(builder, form.form, _index(context, builder, sig, args, 2))
        return _load(context, builder, form.form, array, args[1], rows, ir.Constant(I64, 0))

    return result(form, array, row), lower


@intrinsic
def load_apart(typingctx: Any, form: Any, array: Any, row: Any, step: Any) -> Any:
    """The elements of rows row, row + step, row + 2*step, ... at column 0."""
    result = value_of_rows(form.form)

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        first, distance = _index(context, builder, sig, args, 2), _index(context, builder, sig, args, 3)
        lanes = (builder.mul(distance, ir.Constant(I64, lane)) for lane in range(form.form.lanes))
        rows = [builder.add(first, lane) for lane in lanes]
        return _load(context, builder, form.form, array, args[1], rows, ir.Constant(I64, 0))

    return result(form, array, row, step), lower


@intrinsic
def gather(typingctx: Any, form: Any, array: Any, codes: Any, i: Any, column: Any) -> Any:
    """The elements at `column` of the rows that codes[i], codes[i+1], ... name."""
    result = value_of_rows(form.form)

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        first, column_index = _index(context, builder, sig, args, 3), _index(context, builder, sig, args, 4)
        rows = _coded_rows(context, builder, codes, args[2], first, form.form.lanes)
        return _load(context, builder, form.form, array, args[1], rows, column_index)

    return result(form, array, codes, i, column), lower


@intrinsic
def store_at(typingctx: Any, form: Any, array: Any, row: Any, column: Any, x: Any) -> Any:
    """Write a canonical or `reduced` value to `column` of rows `row`, `row` + 1, ..."""
    _require_fit(form.form, x)

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        rows = _neighbours(builder, form.form, _index(context, builder, sig, args, 2))
        column_index = _index(context, builder, sig, args, 3)
        _store(context, builder, form.form, array, args[1], rows, column_index, args[4])
        return context.get_dummy_value()

    return types.void(form, array, row, column, x), lower


@intrinsic
def store(typingctx: Any, form: Any, array: Any, row: Any, x: Any) -> Any:
    """Write a canonical or `reduced` value to rows `row`, `row` + 1, ... at column 0."""
    _require_fit(form.form, x)

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        rows = _neighbours(builder, form.form, _index(context, builder, sig, args, 2))
        _store(context, builder, form.form, array, args[1], rows, ir.Constant(I64, 0), args[3])
        return context.get_dummy_value()

    return types.void(form, array, row, x), lower


def _require_fit(form: Any, x: Any) -> None:
    """Rows take no value beyond their range."""
    parts = _parts(x)
    assert len(parts) == form.degree and all(
        part.form == form.base and part.is_carried and part.high <= form.base.row_high for part in parts
    ), x


def _index(context: Any, builder: Any, sig: Any, args: Any, position: int) -> Any:
    return context.cast(builder, args[position], sig.args[position], types.intp)


def _neighbours(builder: Any, form: Any, first: Any) -> list[Any]:
    return [builder.add(first, ir.Constant(I64, lane)) for lane in range(form.lanes)]


def _coded_rows(context: Any, builder: Any, codes_type: Any, codes: Any, i: Any, lanes: int) -> list[Any]:
    data = cgutils.create_struct_proxy(codes_type)(context, builder, codes).data
    rows = []
    for lane in range(lanes):
        code = builder.load(builder.gep(data, [builder.add(i, ir.Constant(I64, lane))]))
        rows.append(builder.zext(builder.lshr(code, ir.Constant(code.type, 1)), I64))
    return rows


def word_pointer(context: Any, builder: Any, array_type: Any, array: Any, row: Any, column: Any) -> Any:
    """Address of word `column` of row `row`."""
    struct = cgutils.create_struct_proxy(array_type)(context, builder, array)
    words_a_row = cgutils.unpack_tuple(builder, struct.shape)[-1]
    offset = builder.add(builder.mul(row, words_a_row), column)
    return builder.gep(struct.data, [offset])


def _row_pointer(
    context: Any, builder: Any, words_a_row: int, array_type: Any, array: Any, row: Any, column: Any
) -> Any:
    """The same for a GPU's bare pointers instead of arrays: they do not know how long a row is."""
    if isinstance(array_type, types.CPointer):
        return builder.gep(array, [builder.add(builder.mul(row, ir.Constant(I64, words_a_row)), column)])
    return word_pointer(context, builder, array_type, array, row, column)


def _component_pointers(
    context: Any, builder: Any, form: Any, array_type: Any, array: Any, rows: list[Any], column: Any
) -> list[list[Any]]:
    """For each component of the form, the addresses of its words in the rows."""
    columns = [builder.add(column, ir.Constant(I64, i * form.base.words)) for i in range(form.degree)]
    return [
        [_row_pointer(context, builder, form.words, array_type, array, row, component) for row in rows]
        for component in columns
    ]


def _load(
    context: Any, builder: Any, form: Any, array_type: Any, array: Any, rows: list[Any], column: Any
) -> Any:
    pointers = _component_pointers(context, builder, form, array_type, array, rows, column)
    return join(builder, [form.base.lowering.load_rows(builder, form.base, places) for places in pointers])


def _store(
    context: Any,
    builder: Any,
    form: Any,
    array_type: Any,
    array: Any,
    rows: list[Any],
    column: Any,
    value: Any,
) -> None:
    pointers = _component_pointers(context, builder, form, array_type, array, rows, column)
    for component, places in zip(split(builder, form, value), pointers, strict=True):
        form.base.lowering.store_rows(builder, form.base, component, places)


def join(builder: Any, components: list[Any]) -> Any:
    """A value from its one or two components."""
    if len(components) == 1:
        return components[0]
    value = ir.Constant(ir.LiteralStructType([component.type for component in components]), ir.Undefined)
    for i, component in enumerate(components):
        value = builder.insert_value(value, component, i)
    return value


def split(builder: Any, form: Any, value: Any) -> list[Any]:
    """The one or two components of a value."""
    return [value] if form.degree == 1 else [builder.extract_value(value, i) for i in range(2)]


# Scratch.


def _parts(x: Any) -> list[Element]:
    return [x.c0, x.c1] if isinstance(x, Fq2) else [x]


@intrinsic
def spill(typingctx: Any, form: Any, scratch: Any, i: Any, x: Any) -> Any:
    """Put a carried value into place i of a scratch array, as the registers hold it: cheaper than `store`.

    scratch  1-D uint64, 64-byte aligned; a place has limbs * lanes words (twice that in Fq2)
    """
    assert all(part.is_carried and part.high <= _SPILLED_HIGH for part in _parts(x)), x

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        write_place(context, builder, sig, args)
        return context.get_dummy_value()

    return types.void(form, scratch, i, x), lower


@intrinsic
def unspill(typingctx: Any, form: Any, scratch: Any, i: Any) -> Any:
    """The value that `spill` put into place i."""
    base = form.form.base
    component = Element(base) if base.lanes == 1 else Element(base, 0, _SPILLED_HIGH)
    result = component if form.form.degree == 1 else Fq2(component, component)

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return read_place(context, builder, sig, args)

    return result(form, scratch, i), lower


def write_place(context: Any, builder: Any, sig: Any, args: Any) -> None:
    """Store the limbs of value args[3], whatever their state, at place args[2] of scratch args[1]."""
    form = sig.args[0].form
    pointers = place_pointers(context, builder, sig, args)
    for component, pointer in zip(split(builder, form, args[3]), pointers, strict=True):
        form.base.lowering.store_limbs(builder, form.base, component, pointer)


def read_place(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """The limbs that `write_place` stored, as a value."""
    base = sig.args[0].form.base
    pointers = place_pointers(context, builder, sig, args)
    return join(builder, [base.lowering.load_limbs(builder, base, pointer) for pointer in pointers])


def place_pointers(context: Any, builder: Any, sig: Any, args: Any) -> list[Any]:
    """Addresses of the components at place args[2] of scratch args[1]."""
    form = sig.args[0].form
    data = cgutils.create_struct_proxy(sig.args[1])(context, builder, args[1]).data
    words = form.base.limbs * form.lanes
    first = builder.mul(_index(context, builder, sig, args, 2), ir.Constant(I64, words * form.degree))
    places = [builder.add(first, ir.Constant(I64, words * i)) for i in range(form.degree)]
    return [builder.gep(data, [place]) for place in places]


# Encodings: numbers as bytes, most significant first, c1 before c0.


@intrinsic
def load_encoded(typingctx: Any, form: Any, encoded: Any, row: Any, last: Any, column: Any) -> Any:
    """The plain numbers at byte `column` of rows `row`, `row` + 1, ..., but of `last` for those beyond it.

    encoded  (n, bytes) uint8, a whole point a row. The result may exceed p: see `is_below_p`
    """
    result = _encoded_value(form)

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        rows = _rows_up_to(context, builder, sig, args, 2)
        return _load_encoded(context, builder, sig, args, rows)

    return result(form, encoded, row, last, column), lower


@intrinsic
def gather_encoded(
    typingctx: Any, form: Any, encoded: Any, i: Any, last: Any, column: Any, index: Any
) -> Any:
    """The same of the rows index[i], index[i+1], ..., but index[last] for those beyond it; 1-D uint32."""
    result = _encoded_value(form)

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = cgutils.create_struct_proxy(index)(context, builder, args[5]).data
        places = _rows_up_to(context, builder, sig, args, 2)
        rows = [builder.zext(builder.load(builder.gep(data, [place])), I64) for place in places]
        return _load_encoded(context, builder, sig, args, rows)

    return result(form, encoded, i, last, column, index), lower


@intrinsic
def store_encoded(typingctx: Any, form: Any, encoded: Any, row: Any, last: Any, column: Any, x: Any) -> Any:
    """Write plain numbers as `load_encoded` reads them; what belongs beyond `last` goes to row `last`."""
    assert x == value_of_form(form.form), x

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        rows = _rows_up_to(context, builder, sig, args, 2)
        pointers = _encoded_pointers(context, builder, sig, args, rows)
        base = form.form.base
        for component, places in zip(split(builder, form.form, args[5]), pointers, strict=True):
            base.lowering.store_big_endian(builder, base, component, places)
        return context.get_dummy_value()

    return types.void(form, encoded, row, last, column, x), lower


def _encoded_value(form: Any) -> Any:
    """The type of plain numbers that may exceed p."""
    component = form.form.base.lowering.encoded_type(Element(form.form.base))
    return component if form.form.degree == 1 else Fq2(component, component)


def _load_encoded(context: Any, builder: Any, sig: Any, args: Any, rows: list[Any]) -> Any:
    base = sig.args[0].form.base
    pointers = _encoded_pointers(context, builder, sig, args, rows)
    return join(builder, [base.lowering.load_big_endian(builder, base, places) for places in pointers])


def _rows_up_to(context: Any, builder: Any, sig: Any, args: Any, position: int) -> list[Any]:
    """The row args[position] and its neighbours, but none beyond args[position + 1]."""
    first, last = (_index(context, builder, sig, args, position + k) for k in (0, 1))
    return [_at_most(builder, row, last) for row in _neighbours(builder, sig.args[0].form, first)]


def _encoded_pointers(context: Any, builder: Any, sig: Any, args: Any, rows: list[Any]) -> list[list[Any]]:
    """For each component, c0 first, the addresses of its bytes in rows of args[1], from byte args[4] on."""
    form, column = sig.args[0].form, _index(context, builder, sig, args, 4)
    size = form.base.modulus.bits // 64 * 8 + 8
    offsets = [builder.add(column, ir.Constant(I64, size * i)) for i in reversed(range(form.degree))]
    point = 2 * form.degree * size
    return [
        [_row_pointer(context, builder, point, sig.args[1], args[1], row, offset) for row in rows]
        for offset in offsets
    ]


def _at_most(builder: Any, index: Any, last: Any) -> Any:
    return builder.select(builder.icmp_signed("<", index, last), index, last)


# Codes, and hints to the caches.


@intrinsic
def sign_mask(typingctx: Any, form: Any, codes: Any, i: Any) -> Any:
    """Mask of the lanes whose code codes[i + lane] is marked negative."""
    lanes = form.form.lanes

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = cgutils.create_struct_proxy(codes)(context, builder, args[1]).data
        place = builder.gep(data, [_index(context, builder, sig, args, 2)])
        element = context.get_data_type(codes.dtype)
        if lanes == 1:
            return builder.trunc(builder.load(place), ir.IntType(1))
        vector = ir.VectorType(element, lanes)
        loaded = builder.load(builder.bitcast(place, vector.as_pointer()), align=codes.dtype.bitwidth // 8)
        return builder.trunc(loaded, ir.VectorType(ir.IntType(1), lanes))

    return Mask(lanes)(form, codes, i), lower


@intrinsic
def prefetch(typingctx: Any, form: Any, array: Any, codes: Any, i: Any) -> Any:
    """Ask for the cache lines of the points (two coordinates each) that codes[i], codes[i+1], ... name."""
    lines = range(0, 2 * form.form.words, _CACHE_LINE_WORDS)

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        index = _index(context, builder, sig, args, 3)
        for row in _coded_rows(context, builder, codes, args[2], index, form.form.lanes):
            for column in lines:
                place = ir.Constant(I64, column)
                _emit_prefetch(builder, word_pointer(context, builder, array, args[1], row, place))
        return context.get_dummy_value()

    return types.void(form, array, codes, i), lower


@intrinsic
def prefetch_rows(typingctx: Any, form: Any, array: Any, row: Any) -> Any:
    """Ask for the cache lines that `load` or `store` at row `row` will touch; it may lie beyond the array."""
    words = form.form.words * form.form.lanes
    columns = [
        *range(0, words, _CACHE_LINE_WORDS),
        words - 1,
    ]  # arrays need not begin on a line: one line more

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        index = _index(context, builder, sig, args, 2)
        for column in columns:
            place = ir.Constant(I64, column)
            _emit_prefetch(builder, word_pointer(context, builder, array, args[1], index, place))
        return context.get_dummy_value()

    return types.void(form, array, row), lower


def _emit_prefetch(builder: Any, pointer: Any) -> None:
    """Into the second-level cache: the first level waits for few lines at once, and its loads would queue."""
    byte_pointer = ir.IntType(8).as_pointer()
    function_type = ir.FunctionType(ir.VoidType(), [byte_pointer, I32, I32, I32])
    function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.prefetch.p0")
    hints = [ir.Constant(I32, v) for v in (0, 2, 1)]  # read, into the second level, data
    builder.call(function, [builder.bitcast(pointer, byte_pointer), *hints])
