// Products over channels for 1x1 convolutions, and their weights' gradients. Both keep a tile of
// sums in registers: with 16 registers 4 x 3 sums, 3 operands and 1 more; with 32 registers 6 x 4.
// `full.h` has full convolutions made of the same tiles.

#pragma once

#include "vectors.h"

namespace jaxevo::JAXEVO_BUILD {

constexpr int kTileRows = kRegisters == 32 ? 6 : 4;
constexpr int kTileColumns = kRegisters == 32 ? 4 : 3;

// Pixels of which all channels are worked on before the next ones, so that they stay in cache.
constexpr int kChunk = 128;

// A number that is known when the program is compiled.
template <int kSize>
struct Size {
  static constexpr int size = kSize;
};

// Calls work(Size, first) for parts of at most kMost, each about as large as any other.
template <int kMost, class Work>
inline void in_tiles(int number, Work work) {
  static_assert(kMost <= 6);
  int first = 0;
  for (int tiles = (number + kMost - 1) / kMost; tiles > 0; tiles--) {
    const int size = (number - first + tiles - 1) / tiles;
    if (size == 1) work(Size<1>(), first);
    if (size == 2) work(Size<2>(), first);
    if (size == 3) work(Size<3>(), first);
    if constexpr (kMost > 3)
      if (size == 4) work(Size<4>(), first);
    if constexpr (kMost > 4) {
      if (size == 5) work(Size<5>(), first);
      if (size == 6) work(Size<6>(), first);
    }
    first += size;
  }
}

// A matrix of floats, or its transpose: element (i, j) is data[i * row + j * column].
struct Matrix {
  const float* data;
  int row, column;
  Matrix transposed() const { return {data, column, row}; }
  Matrix from(int i) const { return {data + static_cast<ptrdiff_t>(i) * row, row, column}; }
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

// `Source` is what gives rows of vectors by their number.
template <int M, int P, bool kAdd, class Source>
inline void product_tile(int depth, Matrix a, Source x, Rows y) {
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
    product_tile<kTileRows, P, kAdd>(depth, a.from(m), x, y.from(m, 0));
  }
  for (; m + 2 <= rows; m += 2) {
    product_tile<2, P, kAdd>(depth, a.from(m), x, y.from(m, 0));
  }
  if (m < rows) {
    product_tile<1, P, kAdd>(depth, a.from(m), x, y.from(m, 0));
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

// Adds to the sums what pixels that follow one another give.
template <int M, int K, class Source>
inline void outer_run(int pixels, ConstRows y, Source z, Vector (&sums)[M][K]) {
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
}

template <int M, int K>
inline void outer_tile(int pixels, int valid, ConstRows y, ConstRows z, float* out, int stride) {
  Vector sums[M][K] = {};
  outer_run<M, K>(pixels, y, z, sums);
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
