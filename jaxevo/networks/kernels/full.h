// Full (dense) convolutions: each output channel has a kernel of K x K taps for each input channel.
//
// With r the rectified input and sums over what lies inside of the image:
//
//     y[d, h, w]     = sum over c, i, j of k[d, c, i, j] r[c, h + i - K/2, w + j - K/2]
//     dr[c, h, w]    = sum over d, i, j of k[d, c, K-1-i, K-1-j] dy[d, h + i - K/2, w + j - K/2]
//     dk[d, c, i, j] = sum over images, h, w of dy[d, h, w] r[c, h + i - K/2, w + j - K/2]
//
// Each is a product of matrices, of which one is all shifted copies of an image: row (c, i, j) is
// channel c as tap (i, j) sees it. That matrix is never made: in a padded copy of the channels, the
// row is a channel read from another place on (`Shifted`).

#pragma once

#include "cell.h"
#include "products.h"
#include "spatial.h"
#include "vectors.h"

namespace jaxevo::JAXEVO_BUILD {

// Channels with zeros around each, so that every tap of every pixel reads something.
class PaddedChannels {
 public:
  // Copies pixel(c, i) for every pixel i of every channel c.
  template <class Pixel>
  void load(Image image, int channels, int pad, Pixel pixel) {
    stride_ = image.width + 2 * pad;
    // An odd number of vectors, for the reason that `layout.h` gives.
    plane_ = (static_cast<ptrdiff_t>(image.height + 2 * pad) * stride_) | 1;
    Vector* to = memory_.reserve(channels * plane_);
    for (ptrdiff_t i = 0; i < channels * plane_; i++) to[i] = Vector{};
    for (int c = 0; c < channels; c++)
      for (int h = 0; h < image.height; h++) {
        Vector* row = to + c * plane_ + static_cast<ptrdiff_t>(h + pad) * stride_ + pad;
        for (int w = 0; w < image.width; w++) row[w] = pixel(c, h * image.width + w);
      }
  }
  // Of the first channel: what the first tap sees of a row's first pixel.
  const Vector* corner(int h) { return memory_.data() + static_cast<ptrdiff_t>(h) * stride_; }
  ptrdiff_t plane() const { return plane_; }  // vectors from one channel to the next
  int stride() const { return stride_; }      // vectors from one row to the next

 private:
  VectorBuffer memory_;
  ptrdiff_t plane_ = 0;
  int stride_ = 0;
};

// Rows (c, i, j): padded channels, each read from where its tap is.
struct Shifted {
  const Vector* corner;
  const ptrdiff_t* offsets;
  const Vector* operator[](int row) const { return corner + offsets[row]; }
};

// The middle K x K taps of a slot's kernels [D, 2D, 7, 7].
struct FullKernel {
  const float* slot;
  int size;  // K
  int outs;  // D
  int ins;   // channels of the state, D or 2D
  int row() const { return 2 * outs * kSlotSize; }  // floats from one output channel to the next
  // Where in an output channel's part of the slot a tap lies.
  int place(int in, int i, int j) const {
    const int border = (kMaxKernel - size) / 2;
    return in * kSlotSize + (i + border) * kMaxKernel + j + border;
  }
};

// A convolution of one thread: padded images, the places of their taps, and weights side by side.
class FullPlanes {
 public:
  PaddedChannels input, gradient;

  // The kernel as a matrix [D, C K K].
  Matrix forward_weights(const FullKernel& kernel) {
    float* to = weights_.reserve(static_cast<ptrdiff_t>(kernel.outs) * taps(kernel, kernel.ins));
    for (int out = 0; out < kernel.outs; out++)
      for (int in = 0; in < kernel.ins; in++)
        for (int i = 0; i < kernel.size; i++)
          for (int j = 0; j < kernel.size; j++)
            *to++ = kernel.slot[static_cast<ptrdiff_t>(out) * kernel.row() +
                                kernel.place(in, i, j)];
    return {weights_.data(), taps(kernel, kernel.ins), 1};
  }

  // The kernel of the gradient, [C, D K K]: its taps are turned by 180 degrees.
  Matrix backward_weights(const FullKernel& kernel) {
    const int last = kernel.size - 1;
    float* to = weights_.reserve(static_cast<ptrdiff_t>(kernel.ins) * taps(kernel, kernel.outs));
    for (int in = 0; in < kernel.ins; in++)
      for (int out = 0; out < kernel.outs; out++)
        for (int i = 0; i <= last; i++)
          for (int j = 0; j <= last; j++)
            *to++ = kernel.slot[static_cast<ptrdiff_t>(out) * kernel.row() +
                                kernel.place(in, last - i, last - j)];
    return {weights_.data(), taps(kernel, kernel.outs), 1};
  }

  // Where each tap of so many channels reads, from a pixel's corner on.
  const ptrdiff_t* offsets(const FullKernel& kernel, const PaddedChannels& x, int channels) {
    ptrdiff_t* to = offsets_.reserve(taps(kernel, channels));
    for (int c = 0; c < channels; c++)
      for (int i = 0; i < kernel.size; i++)
        for (int j = 0; j < kernel.size; j++)
          *to++ = c * x.plane() + static_cast<ptrdiff_t>(i) * x.stride() + j;
    return offsets_.data();
  }

  // Where in its part of the slot each tap's gradient lies.
  const int* places(const FullKernel& kernel) {
    int* to = places_.reserve(taps(kernel, kernel.ins));
    for (int in = 0; in < kernel.ins; in++)
      for (int i = 0; i < kernel.size; i++)
        for (int j = 0; j < kernel.size; j++) *to++ = kernel.place(in, i, j);
    return places_.data();
  }

  static int taps(const FullKernel& kernel, int channels) {
    return channels * kernel.size * kernel.size;
  }

 private:
  Buffer<float> weights_;
  Buffer<ptrdiff_t> offsets_;
  Buffer<int> places_;
};

// y [rows, pixels] = weights [rows, taps] x [taps, pixels], one row of the image after another.
inline void multiply_shifted(PaddedChannels& x, const ptrdiff_t* offsets, Image image, int rows,
                             Matrix weights, Rows y) {
  for (int h = 0; h < image.height; h++)
    in_tiles<kTileColumns>(image.width, [&](auto columns, int w) {
      in_tiles<kTileRows>(rows, [&](auto tile, int m) {
        const Shifted from{x.corner(h) + w, offsets};
        product_tile<tile.size, columns.size, false>(weights.row, weights.from(m), from,
                                                     y.from(m, h * image.width + w));
      });
    });
}

// Adds to `slot` the gradient of a kernel; `g` [D, pixels] is not padded, `x` is.
inline void add_full_gradient(PaddedChannels& x, const ptrdiff_t* offsets, const int* places,
                              const FullKernel& kernel, Image image, int valid, ConstRows g,
                              float* slot) {
  // Some rows of the image at a time, so that their pixels stay in cache.
  const int step = image.width < kChunk ? kChunk / image.width : 1;
  const int taps = FullPlanes::taps(kernel, kernel.ins);
  for (int first = 0; first < image.height; first += step) {
    const int last = least(first + step, image.height);
    in_tiles<kTileRows>(kernel.outs, [&](auto tile, int m) {
      in_tiles<kTileColumns>(taps, [&](auto columns, int t) {
        Vector sums[tile.size][columns.size] = {};
        for (int h = first; h < last; h++)
          outer_run<tile.size, columns.size>(image.width, g.from(m, h * image.width),
                                             Shifted{x.corner(h), offsets + t}, sums);
        for (int i = 0; i < tile.size; i++)
          for (int j = 0; j < columns.size; j++)
            slot[static_cast<ptrdiff_t>(m + i) * kernel.row() + places[t + j]] +=
                sum_lanes(sums[i][j], valid);
      });
    });
  }
}

// ------------------------------------------------------------------------------- of one operand

// y [D, pixels] of a state's channels, x(c) as batch norm leaves them.
template <class State>
void full_convolution(FullPlanes& planes, const FullKernel& kernel, Image image, State x, Rows y) {
  planes.input.load(image, kernel.ins, kernel.size / 2,
                    [&](int c, int i) { return relu(x(c)[i]); });
  multiply_shifted(planes.input, planes.offsets(kernel, planes.input, kernel.ins), image,
                   kernel.outs, planes.forward_weights(kernel), y);
}

// From the gradient `dy` [D, pixels] to that of the rectified channels, `dr` [C, pixels], and of
// the kernel, which is added to `slot`.
template <class State>
void full_gradients(FullPlanes& planes, const FullKernel& kernel, Image image, State x,
                    ConstRows dy, int valid, Rows dr, float* slot) {
  const int pad = kernel.size / 2;
  planes.input.load(image, kernel.ins, pad, [&](int c, int i) { return relu(x(c)[i]); });
  add_full_gradient(planes.input, planes.offsets(kernel, planes.input, kernel.ins),
                    planes.places(kernel), kernel, image, valid, dy, slot);
  planes.gradient.load(image, kernel.outs, pad, [&](int c, int i) { return dy[c][i]; });
  multiply_shifted(planes.gradient, planes.offsets(kernel, planes.gradient, kernel.outs), image,
                   kernel.ins, planes.backward_weights(kernel), dr);
}

}  // namespace jaxevo::JAXEVO_BUILD
