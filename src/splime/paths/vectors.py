"""Vectors in registers for numba's kernels: numba's own loops over short rows are 5 times slower.

The width of a vector is a constant of the kernel that uses it. Kernels kept on disk do not notice
a change here: touch `processor.py` after one.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import PrimitiveModel
from numba.extending import intrinsic, overload, register_model

_FLOAT, _INT = ir.FloatType(), ir.IntType(32)


class Vector(types.Type):  # type: ignore[misc]
    """So many float32."""

    def __init__(self, width: int) -> None:
        self.width = width
        super().__init__(name=f"Vector({width})")


@register_model(Vector)
class _Model(PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Vector) -> None:
        super().__init__(manager, kind, ir.VectorType(_FLOAT, kind.width))


def _address(context: Any, builder: Any, kind: Any, array: Any, at: Any, width: int) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [at]), ir.VectorType(_FLOAT, width).as_pointer())


def _spread(builder: Any, number: Any, width: int) -> Any:
    of = ir.VectorType(number.type, width)
    one = builder.insert_element(ir.Constant(of, ir.Undefined), number, ir.Constant(_INT, 0))
    zeros = ir.Constant(ir.VectorType(_INT, width), [0] * width)
    return builder.shuffle_vector(one, ir.Constant(of, ir.Undefined), zeros)


@intrinsic(prefer_literal=True)
def load(typing: Any, array: Any, at: Any, width: Any) -> Any:  # noqa: ARG001
    """The numbers of a flat array from a place on."""
    kind = Vector(width.literal_value)

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        place = _address(context, builder, signature.args[0], *values[:2], kind.width)
        return builder.load(place, align=4)

    return kind(array, types.int64, width), code


@intrinsic
def store(typing: Any, array: Any, at: Any, vector: Any) -> Any:  # noqa: ARG001
    """Put a vector into a flat array."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        place = _address(context, builder, signature.args[0], *values[:2], vector.width)
        builder.store(values[2], place, align=4)
        return context.get_dummy_value()

    return types.void(array, types.int64, vector), code


@intrinsic(prefer_literal=True)
def spread(typing: Any, number: Any, width: Any) -> Any:  # noqa: ARG001
    """A vector of one number."""
    kind = Vector(width.literal_value)

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:  # noqa: ARG001
        return _spread(builder, values[0], kind.width)

    return kind(types.float32, width), code


@intrinsic
def total(typing: Any, vector: Any) -> Any:  # noqa: ARG001
    """The sum of a vector's numbers."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:  # noqa: ARG001
        kind = ir.FunctionType(_FLOAT, [_FLOAT, values[0].type])
        name = f"llvm.vector.reduce.fadd.v{vector.width}f32"
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        return builder.call(function, [ir.Constant(_FLOAT, 0.0), values[0]], fastmath=["reassoc"])

    return types.float32(vector), code


@intrinsic
def where_positive(typing: Any, test: Any, vector: Any) -> Any:  # noqa: ARG001
    """The vector where the other one is above 0, else 0."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:  # noqa: ARG001
        nothing = ir.Constant(values[0].type, [0.0] * vector.width)
        return builder.select(builder.fcmp_ordered(">", values[0], nothing), values[1], nothing)

    return vector(test, vector), code


@intrinsic
def drop(typing: Any, vector: Any, place: Any, least: Any) -> Any:  # noqa: ARG001
    """The vector, with 0 where the hash of a number's place is below a limit (`messages.kept`)."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:  # noqa: ARG001
        width = vector.width
        of = ir.VectorType(_INT, width)
        x = _spread(builder, builder.trunc(values[1], _INT), width)
        x = builder.add(x, ir.Constant(of, list(range(width))))
        for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B), (16, None)):
            x = builder.xor(x, builder.lshr(x, ir.Constant(of, [shift] * width)))
            if factor:
                x = builder.mul(x, ir.Constant(of, [factor] * width))
        least = _spread(builder, builder.trunc(values[2], _INT), width)
        nothing = ir.Constant(values[0].type, [0.0] * width)
        return builder.select(builder.icmp_unsigned(">=", x, least), values[0], nothing)

    return vector(vector, types.int64, types.int64), code


@intrinsic
def _plus(typing: Any, a: Any, b: Any) -> Any:  # noqa: ARG001
    return a(a, b), lambda _, builder, __, values: builder.fadd(*values, flags=["contract"])


@intrinsic
def _minus(typing: Any, a: Any, b: Any) -> Any:  # noqa: ARG001
    return a(a, b), lambda _, builder, __, values: builder.fsub(*values, flags=["contract"])


@intrinsic
def _times(typing: Any, a: Any, b: Any) -> Any:  # noqa: ARG001
    return a(a, b), lambda _, builder, __, values: builder.fmul(*values, flags=["contract"])


_sum = lambda a, b: _plus(a, b)  # noqa: E731
_difference = lambda a, b: _minus(a, b)  # noqa: E731
_product = lambda a, b: _times(a, b)  # noqa: E731
# Without annotations, which numba would compare with those of the inner function.
overload(operator.add)(lambda a, b: _sum if isinstance(a, Vector) else None)  # noqa: ARG005
overload(operator.sub)(lambda a, b: _difference if isinstance(a, Vector) else None)  # noqa: ARG005
overload(operator.mul)(lambda a, b: _product if isinstance(a, Vector) else None)  # noqa: ARG005
