// Products over channels for 1x1 convolutions, and their weights' gradients. Both keep a tile of
// sums in registers: with 16 registers 4 x 3 sums, 3 operands and 1 more; with 32 registers 6 x 4.

#pragma once

#include "vectors.h"

namespace jaxevo::JAXEVO_BUILD {

constexpr int kTileRows = kRegisters == 32 ? 6 : 4;
constexpr int kTileColumns = kRegisters == 32 ? 4 : 3;

// A matrix of floats, or its transpose: element (i, j) is data[i * row + j * column].
struct Matrix {
  const float* data;
  int row, column;
  Matrix transposed() const { return {data, column, row}; }
};

// Rows of vectors; row i begins at data + i * stride. (No template: it would lose the vectors'
// alignment.)
struct ConstRows {
  const Vector* data;
  int stride;
  const Vector* operator[](int row) const { return data + static_cast<ptrdiff_t>(row) * stride; }
  ConstRows from(int row, int column) const { return {(*this)[row] + column, stride}; }
};

struct Rows {
  Vector* data;
  int stride;
  Vector* operator[](int row) const { return data + static_cast<ptrdiff_t>(row) * stride; }
  Rows from(int row, int column) const { return {(*this)[row] + column, stride}; }
  operator ConstRows() const { return {data, stride}; }
};

template <int M, int P, bool kAdd>
inline void product_tile(int depth, Matrix a, ConstRows x, Rows y) {
  Vector sums[M][P] = {};
  for (int k = 0; k < depth; k++) {
    const Vector* column = x[k];
    Vector operand[P];
#pragma GCC unroll 8
    for (int p = 0; p < P; p++) operand[p] = column[p];
#pragma GCC unroll 8
    for (int m = 0; m < M; m++) {
      const Vector weight = splat(a.data[m * a.row + k * a.column]);
#pragma GCC unroll 8
      for (int p = 0; p < P; p++) sums[m][p] += weight * operand[p];
    }
  }
#pragma GCC unroll 8
  for (int m = 0; m < M; m++)
#pragma GCC unroll 8
    for (int p = 0; p < P; p++) y[m][p] = kAdd ? y[m][p] + sums[m][p] : sums[m][p];
}

// Fetches the strip after this one. Its rows lie far apart, so the processor does not guess them.
template <int P>
inline void prefetch_next(int rows, const Vector* first, int stride, int writing) {
  for (int row = 0; row < rows; row++, first += stride) {
    if (writing) {
      __builtin_prefetch(first + P, 1);
      __builtin_prefetch(first + 2 * P - 1, 1);
    } else {
      __builtin_prefetch(first + P);
      __builtin_prefetch(first + 2 * P - 1);
    }
  }
}

// Rows of one strip of P pixels, as many at a time as a tile has, then two, then one.
template <int P, bool kAdd>
inline void product_strip(int rows, int depth, Matrix a, ConstRows x, Rows y) {
  int m = 0;
  prefetch_next<P>(depth, x.data, x.stride, 0);
  prefetch_next<P>(rows, y.data, y.stride, 1);
  for (; m + kTileRows <= rows; m += kTileRows) {
    const Matrix part{a.data + static_cast<ptrdiff_t>(m) * a.row, a.row, a.column};
    product_tile<kTileRows, P, kAdd>(depth, part, x, y.from(m, 0));
  }
  for (; m + 2 <= rows; m += 2) {
    const Matrix part{a.data + static_cast<ptrdiff_t>(m) * a.row, a.row, a.column};
    product_tile<2, P, kAdd>(depth, part, x, y.from(m, 0));
  }
  if (m < rows) {
    const Matrix part{a.data + static_cast<ptrdiff_t>(m) * a.row, a.row, a.column};
    product_tile<1, P, kAdd>(depth, part, x, y.from(m, 0));
  }
}

// y [rows, pixels] = a [rows, depth] x [depth, pixels]; with kAdd it is added to y.
template <bool kAdd>
void product(int rows, int depth, int pixels, Matrix a, ConstRows x, Rows y) {
  int p = 0;
  for (; p + kTileColumns <= pixels; p += kTileColumns)
    product_strip<kTileColumns, kAdd>(rows, depth, a, x.from(0, p), y.from(0, p));
  for (; p < pixels; p++) product_strip<1, kAdd>(rows, depth, a, x.from(0, p), y.from(0, p));
}

template <int M, int K>
inline void outer_tile(int pixels, int valid, ConstRows y, ConstRows z, float* out, int stride) {
  Vector sums[M][K] = {};
  for (int p = 0; p < pixels; p++) {
    Vector right[K];
#pragma GCC unroll 8
    for (int k = 0; k < K; k++) right[k] = z[k][p];
#pragma GCC unroll 8
    for (int m = 0; m < M; m++) {
      const Vector left = y[m][p];
#pragma GCC unroll 8
      for (int k = 0; k < K; k++) sums[m][k] += left * right[k];
    }
  }
  for (int m = 0; m < M; m++)
    for (int k = 0; k < K; k++) out[m * stride + k] += sum_lanes(sums[m][k], valid);
}

// out [rows, columns] += sum over pixels and valid images of y [rows, pixels] times z [columns,
// pixels].
inline void add_outer(int rows, int columns, int pixels, int valid, ConstRows y, ConstRows z,
                      float* out, int stride) {
  constexpr int kM = kTileRows, kK = kTileColumns;
  for (int m = 0; m < rows;) {
    const bool tall = m + kM <= rows;
    for (int k = 0; k < columns;) {
      const bool wide = k + kK <= columns;
      const auto left = y.from(m, 0), right = z.from(k, 0);
      float* part = out + m * stride + k;
      if (tall && wide) outer_tile<kM, kK>(pixels, valid, left, right, part, stride);
      if (tall && !wide) outer_tile<kM, 1>(pixels, valid, left, right, part, stride);
      if (!tall && wide) outer_tile<1, kK>(pixels, valid, left, right, part, stride);
      if (!tall && !wide) outer_tile<1, 1>(pixels, valid, left, right, part, stride);
      k += wide ? kK : 1;
    }
    m += tall ? kM : 1;
  }
}

}  // namespace jaxevo::JAXEVO_BUILD
