// Vectors of LANES floats: the same pixel of LANES images, computed side by side.
//
// GCC's and Clang's vector extensions stand for the processor's instructions. Everything that
// depends on the instruction set lies in a namespace of its own, JAXEVO_BUILD, and uses no template
// of the standard library: the linker keeps one copy of a template's instance, which might be one
// that this processor cannot run.

#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>

#ifndef JAXEVO_BUILD
#error "compile with -DJAXEVO_BUILD=<namespace of the build> and -DJAXEVO_LANES=<floats a vector>"
#endif

namespace jaxevo::JAXEVO_BUILD {

constexpr int kLanes = JAXEVO_LANES;
typedef float Vector __attribute__((vector_size(4 * kLanes), aligned(4)));
#ifdef __AVX512F__
constexpr int kRegisters = 32;
#else
constexpr int kRegisters = 16;
#endif

// (0 + value would be an addition: it is not -0 for -0.)
inline Vector splat(float value) { return value - Vector{}; }

// Comparisons with NaN are false, so a NaN stays, as in XLA.
inline Vector relu(Vector x) { return x < 0.0f ? Vector{} : x; }

// NaN if either is.
inline Vector maximum(Vector a, Vector b) {
  const Vector larger = a > b ? a : b;
  return a != a ? a : larger;
}

template <int kNumber>
struct Part {
  typedef float Type __attribute__((vector_size(4 * kNumber)));
};

// Adds the upper half of the lanes to the lower one until one is left.
template <int kNumber>
inline float sum_all_lanes(typename Part<kNumber>::Type v) {
  if constexpr (kNumber == 2) {
    return v[0] + v[1];
  } else {
    typename Part<kNumber / 2>::Type lower, upper;
    std::memcpy(&lower, &v, sizeof(lower));
    std::memcpy(&upper, reinterpret_cast<const char*>(&v) + sizeof(lower), sizeof(upper));
    return sum_all_lanes<kNumber / 2>(lower + upper);
  }
}

// The sum of the first `valid` lanes; the others belong to no image, and may hold anything.
inline float sum_lanes(Vector v, int valid) {
  for (int lane = valid; lane < kLanes; lane++) v[lane] = 0.0f;
  return sum_all_lanes<kLanes>(v);
}

inline int least(int a, int b) { return a < b ? a : b; }

struct OutOfMemory {};

// Memory that grows when it must, and keeps its content only until then.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(ptrdiff_t size) { reserve(size); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { std::free(data_); }

  T* reserve(ptrdiff_t size) {
    if (size > size_) {
      std::free(data_);
      const size_t bytes = (size * sizeof(T) + 63) / 64 * 64;
      data_ = static_cast<T*>(std::aligned_alloc(64, bytes));
      size_ = data_ == nullptr ? 0 : size;
      if (data_ == nullptr) throw OutOfMemory();
    }
    return data_;
  }
  T& operator[](ptrdiff_t i) { return data_[i]; }
  const T& operator[](ptrdiff_t i) const { return data_[i]; }
  T* data() { return data_; }

 private:
  T* data_ = nullptr;
  ptrdiff_t size_ = 0;
};

class VectorBuffer {
 public:
  Vector* reserve(ptrdiff_t size) {
    return reinterpret_cast<Vector*>(floats_.reserve(size * kLanes));
  }
  Vector* data() { return reinterpret_cast<Vector*>(floats_.data()); }

 private:
  Buffer<float> floats_;
};

}  // namespace jaxevo::JAXEVO_BUILD
