// What an operand does to one channel of one block before its 1x1 convolution: depthwise
// convolution of the rectified input, 3x3 pooling, or nothing; and the gradients of these.
//
// With x the channel as batch norm leaves it (`Channel`), r = max(x, 0), k the kernel of K x K
// taps, g the gradient of the output z, and sums over what lies inside of the image:
//
//     convolution   z[h, w] = sum over i, j of k[i, j] r[h + i - K/2, w + j - K/2]
//                   dx[h, w] = (x > 0) sum over i, j of k[K-1-i, K-1-j] g[h + i - K/2, w + j - K/2]
//                   dk[i, j] = sum over images, h, w of g[h, w] r[h + i - K/2, w + j - K/2]
//     average       z = box(x) / count, dx = box(g / count); box: sum of 3x3 pixels, count: their
//     number maximum       of three in a row, then of three of these in a column; the first of
//     equals gets g
//
// Convolutions and pools read a padded copy of the channel, so that no pixel is a special case:
//
//         <---- pad ---->                    <- pad + kOverhang ->
//        +---------------+------------------+---------------------+
//        |     fill      |       fill       |        fill         |  pad rows
//        |     fill      |   H x W pixels   |        fill         |
//        |     fill      |       fill       |        fill         |  pad rows
//        +---------------+------------------+---------------------+

#pragma once

#include "cell.h"
#include "vectors.h"

namespace jaxevo::JAXEVO_BUILD {

constexpr int kOverhang = 8;  // pixels that the last tile of a row may reach beyond it
constexpr float kLowest = -__builtin_inff();

struct Image {
  int height, width;
};

// A channel of a state, and the batch norm that is still to be applied to it.
struct Channel {
  const Vector* pixels;
  float factor, shift;
  Vector operator[](int pixel) const { return pixels[pixel] * factor + shift; }
};

class PaddedPlane {
 public:
  // Makes room for an image, and fills the padding unless it is there from the last one.
  void prepare(Image image, int pad, float fill) {
    if (image.height == height_ && image.width == width_ && pad == pad_ && fill == fill_) return;
    height_ = image.height, width_ = image.width, pad_ = pad, fill_ = fill;
    stride = width_ + 2 * pad + kOverhang;
    const ptrdiff_t size = static_cast<ptrdiff_t>(height_ + 2 * pad) * stride + kOverhang;
    memory_.reserve(size);
    for (ptrdiff_t i = 0; i < size; i++) memory_.data()[i] = splat(fill);
  }
  Vector* row(int h) { return memory_.data() + static_cast<ptrdiff_t>(h + pad_) * stride + pad_; }

  // Writes pixel(i) for every pixel i.
  template <class Pixel>
  void load(Pixel pixel) {
    for (int h = 0; h < height_; h++) {
      Vector* to = row(h);
      for (int w = 0; w < width_; w++) to[w] = pixel(h * width_ + w);
    }
  }

  int stride = 0;

 private:
  int height_ = 0, width_ = 0, pad_ = 0;
  float fill_ = 0.0f;
  VectorBuffer memory_;
};

// For each pixel 1 / the number of pixels that the 3x3 window around it has inside of the image.
class WindowShares {
 public:
  const float* of(Image image) {
    if (image.height == image_.height && image.width == image_.width) return shares_.data();
    image_ = image;
    shares_.reserve(image.height * image.width);
    for (int h = 0; h < image.height; h++)
      for (int w = 0; w < image.width; w++) {
        const int rows = 1 + (h > 0) + (h < image.height - 1);
        const int columns = 1 + (w > 0) + (w < image.width - 1);
        shares_[h * image.width + w] = 1.0f / static_cast<float>(rows * columns);
      }
    return shares_.data();
  }

 private:
  Image image_{0, 0};
  Buffer<float> shares_;
};

// What one thread keeps from channel to channel.
struct Planes {
  PaddedPlane inputs[3], gradients[3];  // for kernels of 3, 5 and 7
  PaddedPlane box, box_rows;            // zeros around
  PaddedPlane low, low_rows;            // less than any number around
  PaddedPlane routed;
  WindowShares window_shares;
};

// ------------------------------------------------------------------------------------ convolution

inline int kernel_size(int operation) {
  return operation >= kConv3 && operation <= kConv7 ? 2 * operation + 1 : 0;
}

// The middle K x K taps of a slot, or the same turned by 180 degrees.
template <int K>
struct Taps {
  Taps(const float* slot, bool turned) {
    for (int i = 0; i < K; i++)
      for (int j = 0; j < K; j++) {
        const int from = turned ? K - 1 - i : i, at = turned ? K - 1 - j : j;
        tap[i][j] = slot[offset(from, at)];
      }
  }
  static constexpr int offset(int i, int j) {
    return (i + (kMaxKernel - K) / 2) * kMaxKernel + j + (kMaxKernel - K) / 2;
  }
  float tap[K][K];
};

// T pixels of a row, whose windows begin at `corner`: T sums stay in registers.
template <int K, int T>
inline void convolve_tile(const Vector* corner, int stride, const Taps<K>& taps,
                          Vector (&sums)[T]) {
#pragma GCC unroll 8
  for (int t = 0; t < T; t++) sums[t] = Vector{};
  for (int i = 0; i < K; i++, corner += stride) {
    Vector tap[K];
#pragma GCC unroll 8
    for (int j = 0; j < K; j++) tap[j] = splat(taps.tap[i][j]);
#pragma GCC unroll 16
    for (int q = 0; q < T + K - 1; q++) {
      const Vector pixel = corner[q];
#pragma GCC unroll 8
      for (int t = 0; t < T; t++)
        if (q - t >= 0 && q - t < K) sums[t] += pixel * tap[q - t];
    }
  }
}

template <int K, int T, class Store>
void convolve_tiles(PaddedPlane& x, Image image, const Taps<K>& taps, Store store) {
  for (int h = 0; h < image.height; h++) {
    const Vector* corner = x.row(h - K / 2) - K / 2;
    for (int w = 0; w < image.width; w += T) {
      Vector sums[T];
      convolve_tile<K, T>(corner + w, x.stride, taps, sums);
#pragma GCC unroll 8
      for (int t = 0; t < T; t++)
        if (w + t < image.width) store(h * image.width + w + t, sums[t]);
    }
  }
}

// Calls store(pixel, sum) for every pixel, with the size of tile that overhangs the row least.
template <int K, class Store>
void convolve(PaddedPlane& x, Image image, const Taps<K>& taps, Store store) {
  const auto columns = [&](int tile) { return (image.width + tile - 1) / tile * tile; };
  if (columns(8) <= columns(7) && columns(8) <= columns(5)) {
    convolve_tiles<K, 8>(x, image, taps, store);
  } else if (columns(7) <= columns(5)) {
    convolve_tiles<K, 7>(x, image, taps, store);
  } else {
    convolve_tiles<K, 5>(x, image, taps, store);
  }
}

// One row of a kernel's gradient, summed over the image; U pixels at once, so that sums are
// independent.
template <int K, int U>
inline void add_row_gradient(const Vector* x, const Vector* g, Vector (&sums)[U][K]) {
#pragma GCC unroll 4
  for (int u = 0; u < U; u++) {
    const Vector gradient = g[u];
#pragma GCC unroll 8
    for (int j = 0; j < K; j++) sums[u][j] += gradient * x[u + j];
  }
}

// Writes the kernel's gradient into the slot's; `g` is not padded.
template <int K>
void kernel_gradient(PaddedPlane& x, Image image, const Vector* g, int valid, float* slot) {
  constexpr int U = K == 3 ? 3 : K == 5 ? 2 : 1;
  for (int i = 0; i < K; i++) {
    Vector sums[U][K] = {};
    Vector rest[1][K] = {};
    for (int h = 0; h < image.height; h++) {
      const Vector* from = x.row(h + i - K / 2) - K / 2;
      const Vector* gradient = g + h * image.width;
      int w = 0;
      for (; w + U <= image.width; w += U) add_row_gradient<K, U>(from + w, gradient + w, sums);
      for (; w < image.width; w++) add_row_gradient<K, 1>(from + w, gradient + w, rest);
    }
    for (int j = 0; j < K; j++) {
      for (int u = 0; u < U; u++) rest[0][j] += sums[u][j];
      slot[Taps<K>::offset(i, j)] = sum_lanes(rest[0][j], valid);
    }
  }
}

template <int K>
void convolution(Planes& planes, Image image, Channel x, const float* kernel, Vector* z) {
  PaddedPlane& input = planes.inputs[K / 2 - 1];
  input.prepare(image, K / 2, 0.0f);
  input.load([=](int i) { return relu(x[i]); });
  convolve(input, image, Taps<K>(kernel, false), [=](int i, Vector sum) { z[i] = sum; });
}

template <int K, class Store>
void convolution_gradients(Planes& planes, Image image, Channel x, const float* kernel,
                           const Vector* dz, int valid, Store store, float* dk) {
  PaddedPlane &input = planes.inputs[K / 2 - 1], &gradient = planes.gradients[K / 2 - 1];
  input.prepare(image, K / 2, 0.0f);
  input.load([=](int i) { return relu(x[i]); });
  kernel_gradient<K>(input, image, dz, valid, dk);
  gradient.prepare(image, K / 2, 0.0f);
  gradient.load([=](int i) { return dz[i]; });
  convolve(gradient, image, Taps<K>(kernel, true),
           [=](int i, Vector sum) { store(i, x[i] > 0.0f ? sum : Vector{}); });
}

// ---------------------------------------------------------------------------------------- pooling

// Combines three pixels of a row, then three of these results of a column.
template <class Combine, class Store>
void pool(PaddedPlane& x, PaddedPlane& rows, Image image, Combine combine, Store store) {
  for (int h = 0; h < image.height; h++) {
    const Vector* from = x.row(h);
    Vector* to = rows.row(h);
    for (int w = 0; w < image.width; w++)
      to[w] = combine(combine(from[w - 1], from[w]), from[w + 1]);
  }
  for (int h = 0; h < image.height; h++) {
    const Vector *before = rows.row(h - 1), *own = rows.row(h), *after = rows.row(h + 1);
    for (int w = 0; w < image.width; w++)
      store(h * image.width + w, combine(combine(before[w], own[w]), after[w]));
  }
}

template <class Pixel, class Store>
void box_sum(Planes& planes, Image image, Pixel pixel, Store store) {
  planes.box.prepare(image, 1, 0.0f);
  planes.box_rows.prepare(image, 1, 0.0f);
  planes.box.load(pixel);
  pool(planes.box, planes.box_rows, image, [](Vector a, Vector b) { return a + b; }, store);
}

inline void average_pool(Planes& planes, Image image, Channel x, Vector* z) {
  const float* share = planes.window_shares.of(image);
  const auto store = [=](int i, Vector sum) { z[i] = sum * share[i]; };
  box_sum(planes, image, [=](int i) { return x[i]; }, store);
}

template <class Store>
void average_pool_gradient(Planes& planes, Image image, const Vector* dz, Store store) {
  const float* share = planes.window_shares.of(image);
  box_sum(planes, image, [=](int i) { return dz[i] * share[i]; }, store);
}

inline void load_lowest_around(Planes& planes, Image image, Channel x) {
  planes.low.prepare(image, 1, kLowest);
  planes.low_rows.prepare(image, 1, kLowest);
  planes.low.load([=](int i) { return x[i]; });
}

inline void max_pool(Planes& planes, Image image, Channel x, Vector* z) {
  load_lowest_around(planes, image, x);
  pool(planes.low, planes.low_rows, image, maximum, [=](int i, Vector most) { z[i] = most; });
}

// Adds a maximum's gradient to the first of the three that is one.
inline void route(Vector before, Vector own, Vector after, Vector gradient, Vector& to_before,
                  Vector& to_own, Vector& to_after) {
  const auto first = (before >= own) & (before >= after);
  const auto second = ~first & (own >= after);
  to_before += first ? gradient : Vector{};
  to_own += second ? gradient : Vector{};
  to_after = (first | second) ? Vector{} : gradient;
}

// From the output's gradient to that of the rows' maxima, `routed`.
inline void route_columns(Planes& planes, Image image, const Vector* dz) {
  planes.routed.prepare(image, 1, 0.0f);
  for (int w = 0; w < image.width; w++) planes.routed.row(0)[w] = Vector{};
  for (int h = 0; h < image.height; h++) {
    const Vector *before = planes.low_rows.row(h - 1), *own = planes.low_rows.row(h);
    const Vector* after = planes.low_rows.row(h + 1);
    Vector *to_before = planes.routed.row(h - 1), *to_own = planes.routed.row(h);
    Vector* to_after = planes.routed.row(h + 1);
    for (int w = 0; w < image.width; w++)
      route(before[w], own[w], after[w], dz[h * image.width + w], to_before[w], to_own[w],
            to_after[w]);
  }
}

template <class Store>
void max_pool_gradient(Planes& planes, Image image, Channel x, const Vector* dz, Store store) {
  load_lowest_around(planes, image, x);
  pool(planes.low, planes.low_rows, image, maximum, [](int, Vector) {});  // for the rows' maxima
  route_columns(planes, image, dz);
  for (int h = 0; h < image.height; h++) {
    const Vector *from = planes.low.row(h), *gradient = planes.routed.row(h);
    Vector before{}, own{};
    for (int w = 0; w < image.width; w++) {
      Vector after;
      route(from[w - 1], from[w], from[w + 1], gradient[w], before, own, after);
      if (w > 0) store(h * image.width + w - 1, before);
      before = own, own = after;
    }
    store(h * image.width + image.width - 1, before);
  }
}

// ------------------------------------------------------------------------------- every operation

// The operation's output `z` for a channel `x`; `kernel` is the channel's slot.
inline void spatial(int operation, Planes& planes, Image image, Channel x, const float* kernel,
                    Vector* z) {
  switch (static_cast<Operation>(operation)) {
    case kConv3:
      return convolution<3>(planes, image, x, kernel, z);
    case kConv5:
      return convolution<5>(planes, image, x, kernel, z);
    case kConv7:
      return convolution<7>(planes, image, x, kernel, z);
    case kMaxPool:
      return max_pool(planes, image, x, z);
    case kAveragePool:
      return average_pool(planes, image, x, z);
    case kIdentity:
      for (int i = 0; i < image.height * image.width; i++) z[i] = x[i];
      return;
    case kNumOperations:
      return;  // no operation
  }
}

// Calls store(pixel, gradient of the channel), and writes a convolution's taps' gradient into `dk`.
template <class Store>
void spatial_gradients(int operation, Planes& planes, Image image, Channel x, const float* kernel,
                       const Vector* dz, int valid, Store store, float* dk) {
  switch (static_cast<Operation>(operation)) {
    case kConv3:
      return convolution_gradients<3>(planes, image, x, kernel, dz, valid, store, dk);
    case kConv5:
      return convolution_gradients<5>(planes, image, x, kernel, dz, valid, store, dk);
    case kConv7:
      return convolution_gradients<7>(planes, image, x, kernel, dz, valid, store, dk);
    case kMaxPool:
      return max_pool_gradient(planes, image, x, dz, store);
    case kAveragePool:
      return average_pool_gradient(planes, image, dz, store);
    case kIdentity:
      for (int i = 0; i < image.height * image.width; i++) store(i, dz[i]);
      return;
    case kNumOperations:
      return;  // no operation
  }
}

}  // namespace jaxevo::JAXEVO_BUILD
